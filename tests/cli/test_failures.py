"""How commands end when something stops them."""

import errno
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from grit.cli import main
from grit.cli.failures import exit_code_of
from grit.errors import GritError, Interrupted
from grit.recipe import load as recipe

TORCH = (
    "[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: "
    "you tried to allocate 42949672960 bytes. Error code 12 (Cannot allocate memory)"
)


def grit(*arguments, code=0, stdout=subprocess.PIPE, **environment):
    done = subprocess.run(
        [sys.executable, "-m", "grit", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        timeout=600,  # against a hang; a busy machine takes its time
    )
    said = done.stderr.decode()
    assert done.returncode == code, said
    return said


def wrapped():
    """A `GritError` as the library raises it for a full disk."""
    try:
        raise OSError(errno.ENOSPC, "No space left on device")
    except OSError as error:
        raise GritError(f"cannot write 'x': {error}") from None


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (GritError("row 3 is wrong."), 2, "error: row 3 is wrong."),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "a.csv"), 2, "error: 'a.csv': No such file or"),
        (
            PermissionError(errno.EACCES, "Permission denied", "a", None, "b"),
            2,
            "error: 'a' and 'b': Permission denied",
        ),
        (OSError(errno.ENOSPC, "No space left on device", "a.csv"), 75, "error: 'a.csv': No space left on device"),
        (OSError(errno.EMFILE, "Too many open files", "a.csv"), 75, "error: 'a.csv': Too many open files"),
        (MemoryError(), 75, "error: not enough memory. Use smaller batches (train.batch_size=...)"),
        (RuntimeError(TORCH), 75, "error: not enough memory for another 40.0 GiB. Use smaller batches"),
        (ImportError("libx.so: failed to map segment from shared object"), 75, "error: not enough memory"),
        (ModuleNotFoundError("No module named 'rdkit'", name="rdkit"), 2, "pip install 'torch-grit[mol]'"),
        (ModuleNotFoundError("", name="matplotlib.figure"), 2, "pip install 'torch-grit[report]'"),
        (
            ModuleNotFoundError("No module named 'foo'", name="foo"),
            70,
            "internal error: ModuleNotFoundError: No module",
        ),
        (
            UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates not allowed"),
            2,
            "error: a name or a text is not valid",
        ),
        (KeyboardInterrupt(), 130, "interrupted"),
        (Interrupted("interrupted in epoch 3; everything is saved."), 130, "interrupted in epoch 3; everything"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 1, ""),
        (
            RecursionError("too deep"),
            70,
            "internal error: RecursionError: too deep (a mistake in grit, not yours); set GRIT_",
        ),
        (KeyError("x\ny"), 70, "internal error: KeyError: 'x\\ny' (a mistake in grit"),
    ],
)
def test_every_error_is_one_line_and_a_code(capsys, error, code, message):
    def command():
        raise error

    assert exit_code_of(command) == code
    said = capsys.readouterr().err
    assert said.startswith(message) if not message.startswith("pip") else message in said
    assert said.count("\n") == (1 if message else 0)


def test_a_full_disk_behind_a_message_is_the_machines(capsys):
    assert exit_code_of(wrapped) == 75
    assert "cannot write 'x'" in capsys.readouterr().err


def test_the_traceback_is_there_for_those_who_ask(capsys, monkeypatch):
    monkeypatch.setenv("GRIT_TRACEBACK", "1")
    assert exit_code_of(lambda: {}["x"]) == 70
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert said.splitlines()[-1].startswith("internal error: KeyError: 'x'")


def test_a_reader_that_goes_is_no_error():
    program = f"{sys.executable} -m grit recipes | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, timeout=600)
    assert done.stderr == ""
    assert done.returncode in (0, 1)  # 0: all was written before the reader went


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("command", [["recipes"], ["--help"]])
def test_a_full_disk_under_the_output(command):
    with open("/dev/full", "wb") as full:
        said = grit(*command, code=75, stdout=full)
    assert said == "error: the output: No space left on device.\n"


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited by Linux's means")
def test_too_little_memory(tmp_path):
    """The limit is what the process has once torch is there, and half a GiB: a matrix of the model takes 1.5 GiB."""
    (tmp_path / "t.csv").write_text("smiles,y\n" + "".join(f"{'C' * (k % 7 + 1)},{k % 5}.5\n" for k in range(30)))
    program = (
        "import resource, sys, torch, grit.training.train, grit.datasets\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        "limit = pages * resource.getpagesize() + (1 << 29)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
        "from grit.cli import main\n"
        "main()\n"
    )
    words = ["fit", "t.csv", "--target", "y", "--split", "random", "--no-forest", "model.hidden_dim=20000"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 75, done.stderr
    assert "error: not enough memory for another 1.5 GiB. Use smaller batches (train.batch_size=...)" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder where not even root can write")
def test_a_folder_that_cannot_be_written():
    said = grit("plot", "rrwp", "CCO", "-o", "/proc/x.png", code=2)
    assert said.startswith("error: cannot write '/proc/x.png': ")
    assert said.count("\n") == 1


def test_a_terminal_that_lacks_a_character():
    assert grit("doctor", PYTHONIOENCODING="ascii") == ""


@pytest.fixture
def here(monkeypatch, capsys):
    """The command in this process, with words as Python makes them of bytes that are not UTF-8."""

    def call(*words, code):
        monkeypatch.setattr(sys, "argv", ["grit", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == code
        return capsys.readouterr().err

    return call


def test_names_that_are_not_unicode(here):
    assert here("recipes", "\udcff", code=2).startswith("error: unknown recipe '\\udcff'")
    assert here("recipes", "\udcff.yaml", code=2).startswith(
        "error: cannot read the recipe '\\udcff.yaml': No such file"
    )
    assert "not valid YAML" in here("recipes", "zinc", "train.lr=\udcff", code=2)


def test_ctrl_c_says_so(here, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(recipe, "recipes", interrupt)
    assert here("recipes", code=130) == "interrupted\n"


def test_an_interrupted_study_says_where_its_work_is(tmp_path, monkeypatch, command):
    def stop(bench):
        raise KeyboardInterrupt

    monkeypatch.setattr("grit.cli.print_reproduce.find_study", lambda name: SimpleNamespace(run=stop))
    said = command("reproduce", "expressivity", "--run", tmp_path / "here", code=130)
    assert f"what was done is kept in {tmp_path / 'here'}. The same command goes on." in said


def test_pressing_ctrl_c_twice_is_as_good_as_once(capsys, monkeypatch):
    """The second one comes while the message is written."""

    def again(error):
        signal.raise_signal(signal.SIGINT)
        return "interrupted", 130

    def command():
        raise KeyboardInterrupt

    monkeypatch.setattr("grit.cli.failures.explain", again)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background begins without it
    try:
        assert exit_code_of(command) == 130
        assert capsys.readouterr().err == "interrupted\n"
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
