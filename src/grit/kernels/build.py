"""The compiled kernels: from the wheel, from the cache, or compiled now with the system's compiler.

The file's name in the cache has a hash of everything that it depends on: sources, flags and processor. The compiler is not
among them, so what was compiled once is used when the compiler has gone. The file ends with a checksum of itself. A library is
loaded only if nobody but the user and root can have written it (`grit.kernels.trust`).
"""

import atexit
import ctypes
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from grit.files.cache_folder import user_cache
from grit.kernels import processor, trust
from grit.kernels.compiler import FLAGS, SANITIZE, KernelsUnavailable, compile_library, compiler, split_words
from grit.kernels.openmp import share_openmp
from grit.kernels.trust import UnsafeFolder

__all__ = ["ABI", "KernelsUnavailable", "Loaded", "cache_folder", "file_name", "load_library", "seal"]

ABI = 2
CHECKSUM = b"\ngrit sha256 "  # stands between the library and its checksum
HERE = Path(__file__)
WHEEL_FOLDER = HERE.parent / "lib"


class Loaded(NamedTuple):
    """The kernels, the file that they were loaded from, and where that comes from."""

    library: ctypes.CDLL
    file: Path
    origin: str


class Folder(NamedTuple):
    """A folder for compiled kernels, and whether it stays when the process ends."""

    path: Path
    stays: bool


def load_library() -> Loaded:
    """The compiled kernels: those of the wheel if they fit the processor, those of the cache, or compiled now."""
    if os.name != "posix":
        raise KernelsUnavailable(f"the fused kernels need Linux or macOS, not {sys.platform}")
    problems = []
    for file in _in_wheel():
        try:
            return Loaded(_open_installed(file), file, "from the wheel")
        except KernelsUnavailable as problem:
            problems.append(str(problem))
    with resources.as_file(resources.files("grit") / "kernels" / "cpp") as sources:
        return _from_cache(sources, problems)


def cache_folder() -> Path:
    """Where compiled kernels are kept: ``$GRIT_KERNEL_CACHE``, or the user's cache folder, ``~`` if there is no home."""
    named = os.environ.get("GRIT_KERNEL_CACHE")
    if named:
        return Path(os.path.expanduser(named))
    return (user_cache() or Path("~/.cache")) / "grit" / "kernels"


def file_name(sources: Path) -> str:
    """The library's name in the cache. It does not depend on there being a compiler."""
    digest = hashlib.sha256()
    for file in sorted(sources.iterdir()):
        if file.suffix in (".h", ".cpp"):
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    digest.update(repr((FLAGS, _flags(), os.environ.get("CXX"), processor.describe())).encode())
    return f"grit-{digest.hexdigest()[:24]}.so"


def seal(file: Path) -> None:
    """Write a library's checksum at its end, which loading ignores, and let nobody else write it."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    with file.open("ab") as library:
        library.write(CHECKSUM + digest.encode())
    file.chmod(0o700)


def _flags() -> list[str]:
    """``$GRIT_KERNEL_FLAGS``, or all that this processor can do."""
    chosen = split_words("GRIT_KERNEL_FLAGS") if "GRIT_KERNEL_FLAGS" in os.environ else ["-march=native"]
    return [*chosen, *SANITIZE] if _sanitized() else chosen


def _sanitized() -> bool:
    return os.environ.get("GRIT_KERNEL_SANITIZE", "0") not in ("", "0")


def _in_wheel() -> list[Path]:
    """The libraries of the wheel that this processor can run, best first; none if other flags are asked for."""
    if "GRIT_KERNEL_FLAGS" in os.environ or _sanitized():
        return []
    files = [WHEEL_FOLDER / f"grit-{level}.so" for level in processor.levels()]
    return [file for file in files if file.exists()]


def _open_installed(file: Path) -> ctypes.CDLL:
    """Load a library of the installed package. It may be as exposed as the Python code beside it, but not more."""
    code = trust.us() | trust.writers(HERE.stat()) | trust.writers(HERE.parent.stat())
    trust.check(file.parent, trust.writers(file.parent.stat()), code)
    return _load(file, trust.open_checked(file, code))


def _from_cache(sources: Path, problems: list[str]) -> Loaded:
    """Load what was compiled before, or compile it, in the first folder where that is safe and possible."""
    name = file_name(sources)
    for folder in _folders():
        file = folder.path / name
        try:
            _make(folder.path)
            if os.path.lexists(file):
                loaded = Loaded(_open_sealed(file), file, "compiled on this machine")
                if problems:
                    _say(*problems, f"using {file}")
                return loaded
        except UnsafeFolder as problem:
            problems.append(str(problem))
            continue
        except (KernelsUnavailable, OSError) as problem:
            problems.append(str(problem))
        if _takes_libraries(folder.path):
            return _compile(sources / "library.cpp", file, folder.stays, problems)
    raise KernelsUnavailable(
        "; ".join(
            [*problems, f"no folder for compiled kernels can be written ({cache_folder()}); set GRIT_KERNEL_CACHE"]
        )
    )


def _folders() -> Iterator[Folder]:
    """Where to look, without links, which others could change later: the last is fresh, for this process alone."""
    if not cache_folder().parts[0].startswith("~"):  # there may be no home
        yield Folder(Path(os.path.realpath(cache_folder())), stays=True)
    with suppress(OSError):  # there may be no temporary folder
        temporary = os.path.realpath(tempfile.gettempdir())
        yield Folder(Path(temporary, f"grit-kernels-{os.geteuid()}"), stays=True)
        fresh = Path(tempfile.mkdtemp(dir=temporary, prefix="grit-kernels-"))
        atexit.register(shutil.rmtree, fresh, ignore_errors=True)
        yield Folder(fresh, stays=False)


def _make(folder: Path) -> None:
    """Make a folder that only the user can write, if it is not there; raise if others can write where it is."""
    trust.check_folder(folder)
    with suppress(OSError):
        for path in (*reversed(folder.parents), folder):
            if not path.exists():
                path.mkdir(mode=0o700, exist_ok=True)
    trust.check_folder(folder)


def _takes_libraries(folder: Path) -> bool:
    """Whether libraries can be written there, and run."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return not os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0)
    except OSError:
        return False


def _compile(source: Path, file: Path, stays: bool, problems: Sequence[str]) -> Loaded:
    """Compile in a folder within the cache, and move the file when it is known to work: another process that does the
    same at the same time sees all of it or nothing.
    """
    try:
        command = compiler()
    except KernelsUnavailable as problem:
        raise KernelsUnavailable("; ".join([*problems, str(problem)])) from None
    kept = f"once; cached in {file.parent}" if stays else "for this process only"
    _say(*problems, f"compiling the fused kernels for this machine (about 15 s, {kept})")
    try:
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=".building-") as folder:
            built = Path(folder) / file.name
            with _spinner():
                compile_library(command, _flags(), source, built)
            seal(built)
            library = _open_sealed(built)
            os.replace(built, file)
    except OSError as error:
        raise KernelsUnavailable(f"the compiled kernels cannot be written to {file.parent}: {error}") from None
    return Loaded(library, file, "compiled on this machine")


def _open_sealed(file: Path) -> ctypes.CDLL:
    """Load a library that we compiled, if it is whole."""
    descriptor = trust.open_checked(file, trust.us())
    with os.fdopen(os.dup(descriptor), "rb") as opened:
        library, mark, digest = opened.read().rpartition(CHECKSUM)
    if not mark or hashlib.sha256(library).hexdigest().encode() != digest:
        os.close(descriptor)
        raise KernelsUnavailable(f"{file} is damaged (its checksum is wrong)")
    return _load(file, descriptor)


def _load(file: Path, descriptor: int) -> ctypes.CDLL:
    """Load what the descriptor is open for, whatever may have the file's name by now."""
    name = f"/proc/self/fd/{descriptor}"
    if not os.path.exists(name):  # not Linux
        name = str(file)
    try:
        share_openmp()
        library = ctypes.CDLL(name)
    except (OSError, KernelsUnavailable) as error:
        os.close(descriptor)
        raise KernelsUnavailable(f"cannot load the compiled kernels: {str(error).replace(name, str(file))}") from None
    # The descriptor stays open: a second library under the same number would be taken for this one.
    try:
        library.grit_abi.restype = library.grit_vector_bytes.restype = ctypes.c_int64
        abi = library.grit_abi()
    except AttributeError as error:
        raise KernelsUnavailable(f"{file} is not a library of grit: {str(error).replace(name, str(file))}") from None
    if abi != ABI:
        raise KernelsUnavailable(f"{file} is of another version ({abi}, expected {ABI})")
    return library


def _say(*parts: str) -> None:
    print(f"grit: {'; '.join(parts)}", file=sys.stderr, flush=True)


def _spinner() -> AbstractContextManager[object]:
    """Something that moves while the user waits, where there is a terminal."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status("compiling")
