"""Compiling the fused kernels: on first use, with the system's compiler, into a cache folder.

The library knows nothing of torch but the OpenMP runtime that both use. Its name carries a hash of everything that it
depends on, so that a changed source, compiler, processor or torch gives a new file and never a stale one.
"""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import torch

FLAGS = ("-std=gnu++17", "-O3", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared", "-fopenmp")
NATIVE = "-march=native"
ABI = 2


class KernelsUnavailable(Exception):
    """The fused kernels cannot be had on this machine; the message says why, in one line."""


def load_library() -> ctypes.CDLL:
    """The compiled kernels, from the cache if they are there."""
    with resources.as_file(resources.files("grit") / "kernels" / "cpp") as sources:
        return _open(_cached(sources))


def compiler() -> str:
    """The C++ compiler: ``$CXX``, or g++, or clang++."""
    wanted = os.environ.get("CXX")
    for name in [wanted] if wanted else ["g++", "c++", "clang++"]:
        found = shutil.which(name)
        if found:
            return found
    raise KernelsUnavailable(
        f"there is no C++ compiler ({wanted or 'g++ or clang++'} is not on the PATH); install one, or set CXX"
    )


def cache_folder() -> Path:
    """Where compiled kernels are kept: ``$GRIT_KERNEL_CACHE``, or the user's cache folder."""
    named = os.environ.get("GRIT_KERNEL_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "grit" / "kernels"


def _cached(sources: Path) -> Path:
    command = [compiler(), *FLAGS, *_architecture()]
    name = f"grit-{_fingerprint(sources, command)}.so"
    for folder in _folders():
        library = folder / name
        if library.is_file():
            return library
        if _writable(folder):
            return _compile(command, sources / "library.cpp", library)
    raise KernelsUnavailable(
        f"no folder for compiled kernels can be written ({cache_folder()}); name one with GRIT_KERNEL_CACHE"
    )


def _folders() -> Iterator[Path]:
    yield cache_folder()
    yield Path(tempfile.gettempdir()) / f"grit-kernels-{os.getuid()}"


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            return folder.stat().st_uid == os.getuid()  # nobody else may put a library there
    except OSError:
        return False


def _architecture() -> list[str]:
    flags = os.environ.get("GRIT_KERNEL_FLAGS")
    return shlex.split(flags) if flags is not None else [NATIVE]


def _fingerprint(sources: Path, command: list[str]) -> str:
    digest = hashlib.sha256()
    for file in sorted(sources.iterdir()):
        if file.suffix in (".h", ".cpp"):
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    try:
        version = subprocess.run([command[0], "--version"], capture_output=True, timeout=60, check=False).stdout
    except OSError as error:
        raise KernelsUnavailable(f"the compiler {command[0]} does not run: {error}") from None
    digest.update(version + repr((command, torch.__version__, platform.machine(), _processor())).encode())
    return digest.hexdigest()[:24]


def _processor() -> str:
    """What ``-march=native`` depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(line for line in dict.fromkeys(lines) if line.startswith(("flags", "Features", "model name")))


def _compile(command: list[str], source: Path, library: Path) -> Path:
    """Compile under a name of our own, then move: whoever else compiles at the same time gives the same file."""
    with tempfile.TemporaryDirectory(dir=library.parent, prefix=".building-") as folder:
        built = Path(folder) / library.name
        try:
            done = subprocess.run(
                [*command, str(source), "-o", str(built), *_openmp()],
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise KernelsUnavailable(f"the compiler {command[0]} failed: {error}") from None
        if done.returncode != 0 or not built.is_file():
            complaint = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[-200:])
            raise KernelsUnavailable(f"the compiler {command[0]} failed: {complaint or 'no message'}")
        os.replace(built, library)
    return library


def _openmp() -> list[str]:
    """The OpenMP runtime that torch brings, if under another name than the system's: two in one process get in each
    other's way.
    """
    brought = sorted((Path(torch.__file__).parent / "lib").glob("libgomp-*.so*"))
    return [str(brought[0])] if brought else []


def _open(library: Path) -> ctypes.CDLL:
    try:
        opened = ctypes.CDLL(str(library))
        opened.grit_abi.restype = ctypes.c_int64
        if opened.grit_abi() != ABI:
            raise KernelsUnavailable(f"{library} is of another version; remove it")
    except (OSError, AttributeError) as error:
        raise KernelsUnavailable(
            f"cannot load the compiled kernels: {error}; remove the file to have it made again"
        ) from None
    return opened
