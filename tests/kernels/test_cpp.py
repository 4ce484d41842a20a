"""The C++ itself: compilers have nothing to say about it, sanitizers neither."""

import os
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from grit.kernels.compiler import FLAGS

SOURCE = Path(str(resources.files("grit") / "kernels" / "cpp" / "library.cpp"))
COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]
LEVELS = ["x86-64", "x86-64-v3", "x86-64-v4"] if os.uname().machine == "x86_64" else ["native"]

pytestmark = pytest.mark.skipif(not COMPILERS, reason="there is no C++ compiler")


def compile_with(compiler, level, *options):
    command = [compiler, *FLAGS, f"-march={level}", "-fopenmp", "-Wall", "-Wextra", "-Werror", *options, str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    if "omp.h" in done.stderr:
        pytest.skip(f"{compiler} has no OpenMP here")
    return done


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_it_reads_without_warnings(compiler, level):
    done = compile_with(compiler, level, "-fsyntax-only")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_it_compiles_without_warnings(compiler, level, tmp_path):
    """Some warnings come only where code is optimised."""
    done = compile_with(compiler, level, "-c", "-o", str(tmp_path / "library.o"))
    assert (done.returncode, done.stderr) == (0, "")


def library_of(compiler, name):
    found = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def run_sanitized(tmp_path, arguments):
    """Python with the kernels compiled for the address and undefined-behaviour sanitizers, which must be loaded first."""
    loaded = [library_of("g++", "libasan.so"), library_of("g++", "libubsan.so")]
    environment = {
        **os.environ,
        "CXX": "g++",
        "GRIT_KERNEL_SANITIZE": "1",
        "GRIT_KERNEL_CACHE": str(tmp_path / "cache"),
        "GRIT_KERNELS": "fused",
        "LD_PRELOAD": " ".join(loaded),
        "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    }
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=7200,
        cwd=tmp_path,
    )


@pytest.mark.slow
@pytest.mark.skipif("g++" not in COMPILERS, reason="there is no g++")
def test_sanitizers_find_nothing(tmp_path):
    tests = Path(__file__).parents[1]
    files = [
        tests / "kernels" / "test_stack.py",
        tests / "kernels" / "test_walks.py",
        tests / "nn" / "test_fused_stack.py",
    ]
    pytest_options = ["-q", "-p", "no:cacheprovider", "--rootdir", tests.parent, "-c", tests.parent / "pyproject.toml"]
    chosen = ["-k", "not compiled and not torchs_own_checks"]
    done = run_sanitized(tmp_path, ["-m", "pytest", *pytest_options, *chosen, *files])
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "ERROR: AddressSanitizer" not in done.stderr
    assert "runtime error" not in done.stderr
    assert "[100%]" in done.stdout


OVERFLOW = """
import grit, torch
from grit.graphs.pairs import Pairs
from grit.nn import fused_stack
fused_stack.check_rows = lambda *rows: None  # so that nobody notices a row too few
pairs = Pairs.from_index(torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1]), 2)
grit.GritLayer(hidden_dim=8, num_heads=2)(torch.randn(2, 8), torch.randn(3, 8), pairs, torch.zeros(2))
"""


@pytest.mark.slow
@pytest.mark.skipif("g++" not in COMPILERS, reason="there is no g++")
def test_sanitizers_would_find_something(tmp_path):
    done = run_sanitized(tmp_path, ["-c", OVERFLOW])
    assert done.returncode != 0
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr
