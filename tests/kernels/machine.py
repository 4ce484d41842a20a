"""For the tests of building: a small library in place of the kernels, and a shell script in place of the compiler."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from importlib import resources

import pytest

from grit.kernels import build

GXX, CP, SLEEP = (shutil.which(name) for name in ("g++", "cp", "sleep"))
needs_compiler = pytest.mark.skipif(GXX is None, reason="there is no g++")

LIBRARY = """
#include <cstdint>
#include <cstdio>
#include <cstdlib>
extern "C" {
int64_t grit_abi() { return ABI; }
int64_t VECTOR_BYTES() { return 16; }
}
__attribute__((constructor)) static void run() {
  const char* marker = getenv("GRIT_TEST_MARKER");
  if (PLANTED && marker) fclose(fopen(marker, "w"));
}
"""
KINDS = {
    "good": {},
    "planted": {"PLANTED": 1},
    "other-abi": {"ABI": 99},
    "no-symbol": {"VECTOR_BYTES": "something_else"},
}


def compile_libraries(folder):
    """Small libraries: name -> file."""
    (folder / "library.cpp").write_text(LIBRARY)
    for name, changed in KINDS.items():
        values = {"ABI": build.ABI, "VECTOR_BYTES": "grit_vector_bytes", "PLANTED": 0} | changed
        defined = [f"-D{key}={value}" for key, value in values.items()]
        made = ["-shared", "-fPIC", str(folder / "library.cpp"), "-o", str(folder / f"{name}.so")]
        subprocess.run([GXX, *defined, *made], check=True)
    return {name: folder / f"{name}.so" for name in KINDS}


class Machine:
    """A machine with a cache, a temporary folder, and whatever compiler a test wants."""

    def __init__(self, folder, libraries, monkeypatch):
        self.libraries = libraries
        self.monkeypatch = monkeypatch
        self.cache, self.temporary, self.bin = folder / "cache", folder / "temporary", folder / "bin"
        self.calls, self.marker = folder / "calls", folder / "marker"
        for path in (self.temporary, self.bin):
            path.mkdir()
        for name in ("CXX", "GRIT_KERNEL_FLAGS", "GRIT_KERNEL_SANITIZE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PATH", str(self.bin))
        monkeypatch.setenv("GRIT_KERNEL_CACHE", str(self.cache))
        monkeypatch.setenv("GRIT_TEST_MARKER", str(self.marker))
        monkeypatch.setattr(tempfile, "tempdir", str(self.temporary))
        monkeypatch.setattr(build, "WHEEL_FOLDER", folder / "wheel")
        self.install("good")

    def install(self, library):
        """A compiler that gives that library."""
        self.script(f'out() {{ while [ "$1" != -o ]; do shift; done; echo "$2"; }}\n'
                    f'{CP} {self.libraries[library]} "$(out "$@")"')  # fmt: skip

    def script(self, body):
        fake_compiler(self.bin, f'echo "$@" >> {self.calls}\n{body}', name="g++")

    def uninstall(self):
        (self.bin / "g++").unlink()

    @property
    def file(self):
        """The library in the cache."""
        return self.cache / library_name()

    def plant(self, folder, library="planted"):
        """Put a library where the kernels would be, with a right checksum."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        planted = folder / library_name()
        shutil.copy(self.libraries[library], planted)
        build.seal(planted)
        return planted

    def times_compiled(self):
        return self.calls.read_text().count("-shared") if self.calls.exists() else 0


def library_name():
    with resources.as_file(resources.files("grit") / "kernels" / "cpp") as sources:
        return build.file_name(sources)


def fake_compiler(folder, body, name="fake-compiler"):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def lines(capsys):
    return capsys.readouterr().err.splitlines()


CHECK = """
import torch, grit
from grit import kernels
layer = grit.GritLayer(hidden_dim=8, num_heads=2)
pairs = grit.graphs.pairs.Pairs.from_index(torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1]), 2)
layer(torch.randn(2, 8), torch.randn(4, 8), pairs, torch.zeros(2))
layer(torch.randn(2, 8), torch.randn(4, 8), pairs, torch.zeros(2))
print(kernels.status().active)
"""


def python(code=CHECK, **environment):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **{k: str(v) for k, v in environment.items()}}
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def result(process, code=0):
    out, errors = process.communicate(timeout=900)
    assert process.returncode == code, errors
    return out.strip(), errors


def said(errors):
    return [line for line in errors.splitlines() if line.startswith("grit:")]


def of_another(path):
    try:
        os.chown(path, 12345, -1)
    except PermissionError:
        pytest.skip("only root can give a file away")


def linked(file):
    """The file is a link to a library that could be loaded by itself."""
    real = file.rename(file.parent / "elsewhere.so")
    file.symlink_to(real)


UNSAFE = {
    "the file of another user": lambda file: of_another(file),
    "a file that the group can write": lambda file: file.chmod(0o720),
    "a file that all can write": lambda file: file.chmod(0o702),
    "a link": linked,
    "the folder of another user": lambda file: of_another(file.parent),
    "a folder that the group can write": lambda file: file.parent.chmod(0o770),
    "a folder that all can write": lambda file: file.parent.chmod(0o777),
    "a sticky folder that all can write": lambda file: file.parent.chmod(0o1777),
    "another user's folder above": lambda file: of_another(file.parent.parent),
    "a folder above that all can write": lambda file: file.parent.parent.chmod(0o777),
}
