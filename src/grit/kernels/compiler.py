"""Running the C++ compiler. Standard library only: the build hook of the wheel (``hatch_build.py``) uses this file too.

The OpenMP functions stay undefined in the library: `grit.kernels.openmp` brings them when it is loaded, from the runtime that
torch uses. Two runtimes in one process get in each other's way.
"""

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

FLAGS = ("-std=gnu++17", "-O3", "-fno-math-errno", "-fno-trapping-math", "-fPIC")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1")
TIMEOUT = 600.0  # seconds; a compiler that takes longer hangs


class KernelsUnavailable(Exception):
    """The fused kernels cannot be used; the message says why, in one line."""


def compiler() -> list[str]:
    """The C++ compiler as a command: ``$CXX``, which may have arguments, or g++, c++ or clang++."""
    wanted = split_words("CXX")
    for words in [wanted] if wanted else [["g++"], ["c++"], ["clang++"]]:
        found = shutil.which(words[0])
        if found:
            return [found, *words[1:]]
    raise KernelsUnavailable(
        f"there is no C++ compiler (CXX: {wanted[0]} is not on the PATH); install it, or set CXX to another"
        if wanted
        else "there is no C++ compiler (g++ or clang++ is not on the PATH); install one, or set CXX"
    )


def split_words(variable: str) -> list[str]:
    """The words of an environment variable, as a shell splits them."""
    value = os.environ.get(variable, "")
    try:
        return shlex.split(value)
    except ValueError as error:
        raise KernelsUnavailable(f"{variable}={value!r} cannot be split into words: {error}") from None


def compile_library(command: Sequence[str], flags: Sequence[str], source: Path, library: Path) -> None:
    """Compile a source file to a shared library. The library's folder is also used for what comes in between."""
    compiled = library.with_suffix(".o")
    _run([*command, *FLAGS, *flags, "-fopenmp", "-c", str(source), "-o", str(compiled)], compiled)
    # clang calls the functions of its own OpenMP runtime, which GNU's does not have: there it must be linked.
    openmp = ["-fopenmp"] if needs_its_own_openmp(compiled) else []
    _run([*command, *FLAGS, *flags, *openmp, "-shared", str(compiled), "-o", str(library)], library)


def needs_its_own_openmp(compiled: Path) -> bool:
    """Whether a compiled file calls LLVM's OpenMP runtime rather than GNU's."""
    return b"__kmpc_" in compiled.read_bytes()


def _run(command: list[str], made: Path) -> None:
    """Run one step; if it takes too long or is interrupted, end it with all that it has started."""
    log = made.with_suffix(".log")
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        except OSError as error:
            raise KernelsUnavailable(f"the compiler {command[0]} does not run: {error.strerror or error}") from None
        try:
            code = process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            raise KernelsUnavailable(
                f"the compiler {command[0]} did not finish within {TIMEOUT:g} s; set CXX to another"
            ) from None
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if code != 0 or not made.is_file():
        lines = log.read_text(errors="replace").split("\n")
        complaint = next((line for line in lines if "error" in line), " ".join(lines).strip()[-200:])
        raise KernelsUnavailable(f"the compiler {command[0]} failed: {complaint.strip() or f'exit code {code}'}")
