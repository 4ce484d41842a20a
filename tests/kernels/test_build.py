"""Compiling the kernels, keeping them, and what happens where they cannot be had: a clear line, and the plain form."""

import os
import shutil
import signal
import stat
import sys
import tempfile
import time
from pathlib import Path

import pytest

from grit import kernels
from grit.kernels import build, processor
from grit.kernels.build import KernelsUnavailable
from tests.kernels.machine import (
    CHECK,
    CP,
    SLEEP,
    fake_compiler,
    library_name,
    lines,
    needs_compiler,
    python,
    result,
    said,
)

pytestmark = pytest.mark.usefixtures("default_choice")


def test_no_compiler(tmp_path):
    out, errors = result(python(PATH=tmp_path, CXX="", GRIT_KERNEL_CACHE=tmp_path / "cache"))
    assert out == "plain"
    (line,) = said(errors)
    assert "using the plain kernels, which are slower: there is no C++ compiler" in line


def test_a_compiler_that_fails(tmp_path):
    broken = fake_compiler(tmp_path, "echo 'library.cpp:1: error: no such thing' >&2; exit 1")
    out, errors = result(python(CXX=broken, GRIT_KERNEL_CACHE=tmp_path / "cache"))
    assert out == "plain"
    compiling, line = said(errors)
    assert "compiling the fused kernels" in compiling
    assert "using the plain kernels" in line
    assert "no such thing" in line
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_compiler_that_hangs(tmp_path):
    hangs = fake_compiler(tmp_path, f"sleep 1000 &\necho $! > {tmp_path}/child\nwait")
    code = f"from grit.kernels import compiler\ncompiler.TIMEOUT = 2\n{CHECK}"
    out, errors = result(python(code, CXX=hangs, GRIT_KERNEL_CACHE=tmp_path / "cache"))
    assert out == "plain"
    _, line = said(errors)
    assert f"the compiler {hangs} did not finish within 2 s" in line
    assert "Traceback" not in errors
    assert ends(int((tmp_path / "child").read_text()))


def ends(process_id, seconds=60):
    """Whether a process is gone, or only waits to be counted."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.kill(process_id, 0)
        except ProcessLookupError:
            return True
        state = Path(f"/proc/{process_id}/stat")
        if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.1)
    os.kill(process_id, signal.SIGKILL)
    return False


def test_fused_that_cannot_be_had_is_an_error(tmp_path):
    cache = tmp_path / "cache"
    _, errors = result(python(PATH=tmp_path, CXX="", GRIT_KERNEL_CACHE=cache, GRIT_KERNELS="fused"), code=1)
    assert "the fused kernels were asked for, but there is no C++ compiler" in errors


def test_plain_asks_for_no_compiler(tmp_path):
    out, errors = result(python(PATH=tmp_path, GRIT_KERNEL_CACHE=tmp_path / "cache", GRIT_KERNELS="plain"))
    assert (out, said(errors)) == ("plain", [])


def test_a_choice_that_is_none():
    _, errors = result(python(GRIT_KERNELS="quick"), code=1)
    assert "GRIT_KERNELS must be one of auto, fused, plain, got 'quick'" in errors


@needs_compiler
def test_where_there_is_a_compiler_the_kernels_are_fused():
    assert kernels.status().active == "fused", kernels.status().reason
    assert "compiled on this machine, for vectors of" in kernels.status().reason


def test_one_line_before_compiling_and_none_when_it_is_cached(machine, capsys):
    first = build.load_library()
    (line,) = lines(capsys)
    assert line == f"grit: compiling the fused kernels for this machine (about 15 s, once; cached in {machine.cache})"
    assert (first.file, first.origin) == (machine.file, "compiled on this machine")
    assert build.load_library().file == machine.file
    assert lines(capsys) == []
    assert machine.times_compiled() == 1
    assert [file.name for file in machine.cache.iterdir()] == [machine.file.name]  # nothing else is left


def test_a_cached_library_is_used_when_the_compiler_has_gone(machine, capsys):
    build.load_library()
    machine.uninstall()
    lines(capsys)
    assert build.load_library().library.grit_abi() == build.ABI
    assert lines(capsys) == []


class Terminal:
    def __init__(self):
        self.written = ""

    def write(self, text):
        self.written += text
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return True


def test_on_a_terminal_something_moves(machine, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    machine.install("good")
    build.load_library()
    assert sys.stderr.written.startswith("grit: compiling")
    assert "\x1b[" in sys.stderr.written
    monkeypatch.setattr(sys, "stderr", Terminal())
    build.load_library()
    assert sys.stderr.written == ""


def test_the_compiler_may_have_arguments(machine, monkeypatch):
    monkeypatch.setenv("CXX", "g++ -O1 '-DNAME=two words'")
    build.load_library()
    assert all("-O1 -DNAME=two words" in call for call in machine.calls.read_text().splitlines())


def test_the_compiler_named_is_not_there(machine, monkeypatch):
    monkeypatch.setenv("CXX", "clang++-99 -O1")
    with pytest.raises(KernelsUnavailable, match="CXX: clang\\+\\+-99 is not on the PATH"):
        build.load_library()


@pytest.mark.parametrize("name", ["CXX", "GRIT_KERNEL_FLAGS"])
def test_words_that_cannot_be_split(machine, monkeypatch, name):
    monkeypatch.setenv(name, "g++ '")
    with pytest.raises(KernelsUnavailable, match=f"{name}=.* cannot be split into words: No closing quotation"):
        build.load_library()


def test_a_compiler_that_does_not_run(machine, monkeypatch):
    fake = machine.bin / "fake"
    fake.write_text("#!/no/such/shell\n")
    fake.chmod(0o700)
    monkeypatch.setenv("CXX", str(fake))
    with pytest.raises(KernelsUnavailable, match="does not run"):
        build.load_library()


def test_only_a_compiler_of_llvm_links_its_own_openmp(machine):
    build.load_library()
    assert "-fopenmp" not in machine.calls.read_text().splitlines()[1]
    machine.calls.unlink()
    machine.script('while [ "$1" != -o ]; do shift; done; echo "call __kmpc_fork_call" > "$2"')
    shutil.rmtree(machine.cache)
    with pytest.raises(KernelsUnavailable, match="cannot load"):
        build.load_library()
    assert "-fopenmp" in machine.calls.read_text().splitlines()[1]


@pytest.mark.parametrize("variable", ["GRIT_KERNEL_FLAGS", "CXX", "GRIT_KERNEL_SANITIZE"])
def test_the_name_depends_on_what_is_asked_for(machine, monkeypatch, variable):
    before = library_name()
    monkeypatch.setenv(variable, "g++ -O1")
    assert library_name() != before


def test_the_name_depends_on_sources_and_processor_but_not_on_the_compiler(machine, tmp_path, monkeypatch):
    sources = tmp_path / "cpp"
    sources.mkdir()
    (sources / "library.cpp").write_text("// one")
    names = [build.file_name(sources)]
    machine.uninstall()
    assert build.file_name(sources) == names[0]
    (sources / "library.cpp").write_text("// two")
    names.append(build.file_name(sources))
    (sources / "more.h").write_text("")
    names.append(build.file_name(sources))
    monkeypatch.setattr(processor, "describe", lambda: "another")
    names.append(build.file_name(sources))
    assert len(set(names)) == len(names)


def test_sanitizers(machine, monkeypatch):
    monkeypatch.setenv("GRIT_KERNEL_SANITIZE", "1")
    build.load_library()
    assert machine.calls.read_text().count("-fsanitize=address,undefined -fno-sanitize-recover=all -g -O1") == 2


def put_instead(file, content):
    """As another file: this process has the old one loaded, and would die of a change when it ends."""
    file.unlink()
    file.write_bytes(content)
    file.chmod(0o700)


def cut(file):
    put_instead(file, file.read_bytes()[: file.stat().st_size // 2])


def change_a_byte(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    put_instead(file, content)


def empty(file):
    put_instead(file, b"")


@pytest.mark.parametrize("damage", [cut, change_a_byte, empty])
def test_a_damaged_library_is_compiled_again(machine, capsys, damage):
    build.load_library()
    damage(machine.file)
    lines(capsys)
    assert build.load_library().library.grit_abi() == build.ABI
    (line,) = lines(capsys)
    assert line.startswith(f"grit: {machine.file} is damaged (its checksum is wrong); compiling the fused kernels")
    assert machine.times_compiled() == 2
    build.load_library()
    assert (lines(capsys), machine.times_compiled()) == ([], 2)


@pytest.mark.parametrize("kind", ["other-abi", "no-symbol"])
def test_a_library_of_another_version_is_compiled_again(machine, capsys, kind):
    machine.plant(machine.cache, kind)
    assert build.load_library().library.grit_abi() == build.ABI
    (line,) = lines(capsys)
    assert {"other-abi": "of another version (99", "no-symbol": "not a library of grit"}[kind] in line


@pytest.mark.parametrize("kind", ["other-abi", "no-symbol"])
def test_compiling_again_is_tried_once(machine, kind):
    machine.install(kind)
    machine.plant(machine.cache, kind)
    with pytest.raises(KernelsUnavailable, match="of another version|not a library of grit"):
        build.load_library()
    assert machine.times_compiled() == 1


def test_a_damaged_library_and_no_compiler(machine):
    build.load_library()
    cut(machine.file)
    machine.uninstall()
    with pytest.raises(KernelsUnavailable, match="is damaged .*; there is no C\\+\\+ compiler"):
        build.load_library()


def test_rubbish_is_not_cached(machine):
    machine.script('while [ "$1" != -o ]; do shift; done; echo rubbish > "$2"')
    with pytest.raises(KernelsUnavailable, match="cannot load the compiled kernels: .*grit-.*so"):
        build.load_library()
    assert list(machine.cache.iterdir()) == []


def test_a_file_in_the_way_of_the_cache(machine, capsys):
    machine.cache.write_text("in the way")
    machine.cache.chmod(0o600)
    machine.monkeypatch.setenv("GRIT_KERNEL_CACHE", str(machine.cache / "kernels"))
    assert build.load_library().file.parent == machine.temporary / f"grit-kernels-{os.geteuid()}"
    assert len(lines(capsys)) == 1


def test_no_home(machine, monkeypatch):
    for name in ("GRIT_KERNEL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert build.load_library().file.parent == machine.temporary / f"grit-kernels-{os.geteuid()}"


def test_no_folder_at_all(machine, monkeypatch):
    (machine.temporary / "file").write_text("in the way")
    monkeypatch.setenv("GRIT_KERNEL_CACHE", str(machine.temporary / "file" / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(machine.temporary / "file"))
    with pytest.raises(KernelsUnavailable, match="no folder .* can be written .*GRIT_KERNEL_CACHE"):
        build.load_library()


def test_two_processes_compile_at_once(machine, tmp_path):
    machine.script(f'{SLEEP} 1; while [ "$1" != -o ]; do shift; done\n'
                   f'{CP} {machine.libraries["good"]} "$2"')  # fmt: skip
    code = "from grit.kernels import build; print(build.load_library().library.grit_abi())"
    both = [python(code, TMPDIR=machine.temporary) for _ in range(2)]
    assert [result(process)[0] for process in both] == [str(build.ABI)] * 2
    assert [file.name for file in machine.cache.iterdir()] == [machine.file.name]


def test_a_lax_umask_does_not_make_the_cache_unsafe(machine, capsys):
    before = os.umask(0)
    try:
        build.load_library()
    finally:
        os.umask(before)
    assert stat.S_IMODE(machine.cache.stat().st_mode) == stat.S_IMODE(machine.file.stat().st_mode) == 0o700
    lines(capsys)
    build.load_library()
    assert lines(capsys) == []


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
"""


@needs_compiler
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the flags are those of x86-64")
def test_portable_builds_differ_by_rounding_only(tmp_path):
    import torch

    flags = {"native": {}, "avx2": {"GRIT_KERNEL_FLAGS": "-march=x86-64-v3 -O1"}}
    flags["oldest"] = {"GRIT_KERNEL_FLAGS": "-march=x86-64 -O1"}
    if "x86-64-v3" not in processor.levels():
        del flags["avx2"]
    saved = []
    for name, environment in flags.items():
        file = tmp_path / f"{name}.pt"
        code = PORTABLE.replace("sys.argv[1]", repr(str(file)))
        if environment:  # the native ones are in the user's cache, because other tests need them too
            environment["GRIT_KERNEL_CACHE"] = tmp_path
        result(python(code, **environment))
        saved.append(torch.load(file, weights_only=True))
    for other in saved[1:]:
        for number, (ours, theirs) in enumerate(zip(saved[0], other, strict=True)):
            error = 1e-6 if number == 5 else 1e-10  # the sixth is in single precision
            torch.testing.assert_close(ours, theirs, rtol=error, atol=error)
