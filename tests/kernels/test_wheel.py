"""Compiled kernels within a wheel, for people without a compiler; and the OpenMP runtime that they share with torch."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grit.kernels import build, processor
from grit.kernels.build import KernelsUnavailable
from tests.kernels.machine import UNSAFE, fake_compiler, lines, needs_compiler, python, result, said

pytestmark = pytest.mark.usefixtures("default_choice")

NEW = "flags : avx avx2 fma bmi1 bmi2 f16c movbe abm xsave avx512f avx512bw avx512cd avx512dq avx512vl"
OLDER = "flags : avx avx2 fma bmi1 bmi2 f16c movbe abm xsave avx512f"


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        ([NEW], ["x86-64-v4", "x86-64-v3"]),
        ([OLDER], ["x86-64-v3"]),
        ([NEW, OLDER], ["x86-64-v3"]),
        (["flags : sse2 avx"], []),
        (["Features : asimd"], []),
        ([], []),
    ],
)
def test_the_processor_decides(monkeypatch, cpuinfo, expected):
    monkeypatch.setattr(processor, "cpuinfo", lambda: cpuinfo)
    assert processor.levels() == expected


@pytest.fixture
def wheel(machine, monkeypatch):
    """A machine with an installed wheel, without a compiler."""
    machine.uninstall()
    monkeypatch.setattr(processor, "cpuinfo", lambda: [NEW])
    build.WHEEL_FOLDER.mkdir()
    for level in processor.LEVELS:
        shutil.copy(machine.libraries["planted"], build.WHEEL_FOLDER / f"grit-{level}.so")
    return machine


@pytest.mark.parametrize(("cpuinfo", "level"), [(NEW, "v4"), (OLDER, "v3")])
def test_a_wheel_needs_no_compiler(wheel, monkeypatch, capsys, cpuinfo, level):
    monkeypatch.setattr(processor, "cpuinfo", lambda: [cpuinfo])
    loaded = build.load_library()
    assert (loaded.file.name, loaded.origin) == (f"grit-x86-64-{level}.so", "from the wheel")
    assert lines(capsys) == []
    assert not wheel.cache.exists()


@pytest.mark.parametrize("unsafe", [name for name in UNSAFE if "above" not in name])
def test_a_library_of_the_wheel_that_others_could_have_written_is_not_loaded(wheel, unsafe):
    for level in processor.LEVELS:
        UNSAFE[unsafe](build.WHEEL_FOLDER / f"grit-{level}.so")
    with pytest.raises(KernelsUnavailable, match="so it is not used|not safe to load"):
        build.load_library()
    assert not wheel.marker.exists()


def test_flags_that_are_asked_for_are_compiled(wheel, monkeypatch):
    monkeypatch.setenv("GRIT_KERNEL_FLAGS", "-march=native")
    wheel.install("good")
    assert build.load_library().origin == "compiled on this machine"


def test_a_damaged_library_of_the_wheel_is_replaced_by_the_next(wheel):
    (build.WHEEL_FOLDER / "grit-x86-64-v4.so").write_text("rubbish")
    assert build.load_library().file.name == "grit-x86-64-v3.so"


REPOSITORY = Path(__file__).parents[2]


def make_wheel(folder, **environment):
    """Build and unpack the wheel of this repository as pip does: (its name, the folder it is installed in)."""
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, folder)
    shutil.copytree(REPOSITORY / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    made = subprocess.run(
        [*pip, "wheel", "--no-deps", "--wheel-dir", str(folder / "dist"), str(folder)],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    if "No matching distribution found for hatchling" in made.stderr:
        pytest.skip("the build needs hatchling, and there is no package index")
    assert made.returncode == 0, made.stdout + made.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    installed = folder / "installed"
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", str(installed), str(wheel)], check=True)
    return wheel.name, installed


ONE_OPENMP = """
import torch, grit
from grit import kernels
torch.set_num_threads(2)
torch.manual_seed(0)
layer = grit.GritLayer(hidden_dim=12, num_heads=2).double().eval()
pairs = grit.graphs.pairs.Pairs.from_index(torch.arange(60).repeat_interleave(60), torch.arange(60).repeat(60), 60)
inputs = (torch.randn(60, 12).double(), torch.randn(3600, 12).double(), pairs, torch.zeros(60).double())
fused = layer(*inputs)
with kernels.use("plain"):
    torch.testing.assert_close(layer(*inputs), fused)
mapped = {line.split()[-1] for line in open("/proc/self/maps")}
print(kernels.status().active, sum("libgomp" in file or "libomp" in file or "libiomp" in file for file in mapped))
"""


@needs_compiler
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc")
def test_torch_and_the_kernels_share_one_openmp_runtime():
    assert result(python(ONE_OPENMP, OMP_NUM_THREADS="2"))[0] == "fused 1"


@pytest.mark.slow
@needs_compiler
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the wheel has libraries for x86-64")
def test_the_wheel_is_fused_without_a_compiler(tmp_path):
    name, installed = make_wheel(tmp_path)
    assert name.endswith("-py3-none-linux_x86_64.whl")
    environment = {"PYTHONPATH": installed, "PATH": tmp_path, "CXX": "", "GRIT_KERNEL_CACHE": tmp_path / "cache"}
    doctor = "import sys; sys.argv = ['grit', 'doctor']; from grit.cli import main; main()"
    out, errors = result(python(doctor, **environment))
    assert "kernels: fused (GRIT_KERNELS=auto): from the wheel, for vectors of" in out
    assert said(errors) == []
    assert result(python(ONE_OPENMP, **environment | {"OMP_NUM_THREADS": "2"}))[0] == "fused 1"
    for library in (installed / "grit" / "kernels" / "lib").iterdir():
        assert str(tmp_path).encode() not in library.read_bytes()  # nothing of the machine that built it
    assert not (tmp_path / "cache").exists()


@pytest.mark.slow
def test_without_a_compiler_the_wheel_is_pure(tmp_path):
    name, installed = make_wheel(tmp_path, CXX="no-such-compiler")
    assert name.endswith("-py3-none-any.whl")
    assert not (installed / "grit" / "kernels" / "lib").exists()


@pytest.mark.slow
def test_an_editable_install_compiles_nothing(tmp_path):
    calls = tmp_path / "calls"
    compiler = fake_compiler(tmp_path, f"echo called > {shlex.quote(str(calls))}; exit 1")
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, tmp_path)
    (tmp_path / "src" / "grit").mkdir(parents=True)
    (tmp_path / "src" / "grit" / "__init__.py").touch()
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--target",
        str(tmp_path / "to"),
        "-e",
        str(tmp_path),
    ]
    done = subprocess.run(
        command, env={**os.environ, "CXX": str(compiler)}, capture_output=True, text=True, timeout=1800
    )
    if "No matching distribution found for hatchling" in done.stderr:
        pytest.skip("the build needs hatchling, and there is no package index")
    assert done.returncode == 0, done.stderr
    assert not calls.exists()
