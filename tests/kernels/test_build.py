"""What happens where the kernels cannot be compiled: a clear line, and the plain form."""

import os
import stat
import subprocess
import sys

import pytest

from grit import kernels
from grit.kernels import build

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
    out, errors = process.communicate(timeout=300)
    assert process.returncode == code, errors
    return out.strip(), errors


def fake_compiler(folder, body):
    path = folder / "fake-compiler"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def one_line(errors):
    lines = [line for line in errors.splitlines() if line.startswith("grit:")]
    assert len(lines) == 1, errors
    return lines[0]


def test_no_compiler(tmp_path):
    out, errors = result(python(PATH=tmp_path, GRIT_KERNEL_CACHE=tmp_path / "cache"))
    assert out == "plain"
    assert "there is no C++ compiler" in one_line(errors)


def test_a_compiler_that_fails(tmp_path):
    broken = fake_compiler(tmp_path, "echo 'library.cpp:1: error: no such thing' >&2; exit 1")
    out, errors = result(python(CXX=broken, GRIT_KERNEL_CACHE=tmp_path / "cache"))
    assert out == "plain"
    assert "no such thing" in one_line(errors)
    assert list((tmp_path / "cache").glob("*.so")) == []


def test_a_compiler_that_makes_rubbish(tmp_path):
    body = 'while [ "$#" -gt 1 ]; do if [ "$1" = -o ]; then echo rubbish > "$2"; fi; shift; done'
    out, errors = result(python(CXX=fake_compiler(tmp_path, body), GRIT_KERNEL_CACHE=tmp_path / "cache"))
    assert out == "plain"
    assert "cannot load the compiled kernels" in one_line(errors)


def test_fused_that_cannot_be_had_is_an_error(tmp_path):
    _, errors = result(python(PATH=tmp_path, GRIT_KERNEL_CACHE=tmp_path / "cache", GRIT_KERNELS="fused"), code=1)
    assert "the fused kernels were asked for, but there is no C++ compiler" in errors


def test_plain_asks_for_no_compiler(tmp_path):
    out, errors = result(python(PATH=tmp_path, GRIT_KERNEL_CACHE=tmp_path / "cache", GRIT_KERNELS="plain"))
    assert out == "plain"
    assert "grit:" not in errors


def test_a_choice_that_is_none():
    _, errors = result(python(GRIT_KERNELS="quick"), code=1)
    assert "GRIT_KERNELS must be one of auto, fused, plain, got 'quick'" in errors


QUICK = "-O0"  # where the tests are about the file, not about what is in it
needs_compiler = pytest.mark.skipif(build.shutil.which("g++") is None, reason="there is no g++")


@needs_compiler
def test_where_there_is_a_compiler_the_kernels_are_fused():
    assert kernels.status().active == "fused", kernels.status().reason


@needs_compiler
def test_a_cache_that_cannot_be_written_is_replaced_by_the_temporary_folder(tmp_path):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "temporary").mkdir()
    quick = fake_compiler(tmp_path, 'exec g++ -O0 "$@"')  # what is tested here is where it goes
    out, errors = result(
        python(CXX=quick, GRIT_KERNEL_CACHE=tmp_path / "file" / "cache", TMPDIR=tmp_path / "temporary")
    )
    assert (out, "grit:" in errors) == ("fused", False)
    assert len(list((tmp_path / "temporary").glob("grit-kernels-*/*.so"))) == 1


@needs_compiler
def test_no_folder_at_all(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("GRIT_KERNEL_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(build.tempfile, "gettempdir", lambda: str(tmp_path / "file"))
    with pytest.raises(build.KernelsUnavailable, match="GRIT_KERNEL_CACHE"):
        build.load_library()


@needs_compiler
def test_two_processes_compile_at_once(tmp_path):
    both = [python(GRIT_KERNEL_CACHE=tmp_path, GRIT_KERNEL_FLAGS=QUICK) for _ in range(2)]
    assert [result(process)[0] for process in both] == ["fused", "fused"]
    assert len(list(tmp_path.glob("*.so"))) == 1
    assert len(list(tmp_path.iterdir())) == 1  # nothing half-made is left


def test_the_name_depends_on_everything(tmp_path, monkeypatch):
    sources = tmp_path / "cpp"
    sources.mkdir()
    (sources / "library.cpp").write_text("// one")
    compiler = str(fake_compiler(tmp_path, "echo version 1"))
    names = [build._fingerprint(sources, [compiler])]
    monkeypatch.setattr(build.torch, "__version__", "99.0")
    names.append(build._fingerprint(sources, [compiler]))
    names.append(build._fingerprint(sources, [compiler, "-O1"]))
    fake_compiler(tmp_path, "echo version 2")
    names.append(build._fingerprint(sources, [compiler, "-O1"]))
    (sources / "library.cpp").write_text("// two")
    names.append(build._fingerprint(sources, [compiler, "-O1"]))
    monkeypatch.setattr(build, "_processor", lambda: "another")
    names.append(build._fingerprint(sources, [compiler, "-O1"]))
    assert len(set(names)) == len(names)


PORTABLE = """
import sys, torch, grit
from grit import kernels
from torch_geometric.data import Data
torch.manual_seed(0)
graphs = [Data(edge_index=torch.randint(n, (2, 3 * n)), num_nodes=n) for n in (5, 12, 30)]
layer = grit.GritLayer(hidden_dim=52, num_heads=4).double().eval()
batch = grit.PairBatch.from_data_list(graphs, walk_steps=19, dtype=torch.float64)
x = torch.randn(47, 52, dtype=torch.float64, requires_grad=True)
pair = torch.randn(batch.num_pairs, 52, dtype=torch.float64)
out, rows = layer(x, pair, batch.pairs, batch.log_degree)
(out.sin().sum() + rows.sin().sum()).backward()
assert kernels.status().active == "fused", kernels.status().reason
nothing = grit.Features(kind="none")
model = grit.Grit(schema=grit.GraphSchema(node=nothing, edge=nothing), walk_steps=19, num_layers=3, attention_dropout=0.2)
model.double().train()(batch).square().sum().backward()
grads = [p.grad for p in model.parameters() if p.grad is not None]
single = grit.PairBatch.from_data_list(graphs, walk_steps=19).pair_encoding.double()
torch.save([out.detach(), rows.detach(), x.grad, layer.attention.score.grad, batch.pair_encoding, single, *grads], sys.argv[1])
print(kernels.status().reason.split(":")[0])
"""


@needs_compiler
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the flags are those of x86-64")
def test_portable_builds_differ_by_rounding_only(tmp_path):
    import torch

    saved = []
    for name, flags in (("native", "-march=native"), ("avx2", "-march=x86-64-v3"), ("oldest", "-march=x86-64")):
        file = tmp_path / f"{name}.pt"
        code = PORTABLE.replace("sys.argv[1]", repr(str(file)))
        result(python(code, GRIT_KERNEL_CACHE=tmp_path / name, GRIT_KERNEL_FLAGS=flags))
        saved.append(torch.load(file, weights_only=True))
    for other in saved[1:]:
        for number, (ours, theirs) in enumerate(zip(saved[0], other, strict=True)):
            error = 1e-6 if number == 5 else 1e-10  # the sixth is in single precision
            torch.testing.assert_close(ours, theirs, rtol=error, atol=error)
