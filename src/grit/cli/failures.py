"""How a command ends: whatever stops it is a message on stderr and an exit code, never a traceback.

    0    done                                       75   the machine's limit: memory, disk; the same command may work later
    1    the reader of the output has gone          130  stopped with Ctrl-C, or training with SIGTERM, after saving
    2    a mistake of the user's                    70   a mistake in grit

With ``GRIT_TRACEBACK=1`` the traceback comes before the message.
"""

import errno
import io
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from grit.errors import GritError, Interrupted, lacks_memory

NO_READER, MISTAKE, INTERNAL, MACHINE, INTERRUPTED = 1, 2, 70, 75, 130

# What `pip install torch-grit` leaves out, and the extra that brings it.
EXTRAS = {
    "rdkit": "mol",
    "networkx": "mol",
    "pyarrow": "tables",
    "skimage": "image",
    "matplotlib": "report",
    "psutil": "bench",
    "onnx": "export",
    "onnxscript": "export",
    "onnxruntime": "export",
    "tensorboard": "log",
    "wandb": "log",
    "optuna": "tune",
}
_LIMITS = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE}


def exit_code_of(command: Callable[[], object]) -> int:
    """Run a command; its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that lacks a character is no reason to fail
    try:
        code = _finished(command)
    except (Exception, KeyboardInterrupt) as error:  # the one place where everything ends
        with _without_interrupts():  # who is impatient presses Ctrl-C again, while we say how it ended
            code = report(error)
            return _flushed(code)
    return _flushed(code)


def _flushed(code: int) -> int:
    """The exit code after the output was written, or could not be."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        # Otherwise Python tries again when it ends, and complains in its own words.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = code or report(error)
    return code


@contextmanager
def _without_interrupts() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _finished(command: Callable[[], object]) -> int:
    try:
        command()
    except SystemExit as end:  # Typer has said what there is to say, except here
        if end.code == INTERRUPTED:
            raise KeyboardInterrupt from end
        return end.code if isinstance(end.code, int) else MISTAKE if end.code else 0
    return 0


def report(error: BaseException) -> int:
    """Say on stderr what stopped a command; the exit code."""
    text, code = explain(error)
    with suppress(OSError):  # stderr is gone or full: the exit code has to do
        if os.environ.get("GRIT_TRACEBACK"):
            traceback.print_exception(error)
        if text:
            print(text, file=sys.stderr, flush=True)
    return code


def explain(error: BaseException) -> tuple[str, int]:
    """The message and the exit code for an error."""
    limit = _limit(error)
    if isinstance(error, Interrupted):
        return str(error), INTERRUPTED
    if isinstance(error, GritError):
        return f"error: {error}", MISTAKE if limit is None else MACHINE
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return "", NO_READER
    if limit is not None:
        return f"error: {limit}", MACHINE
    if isinstance(error, OSError):
        names = [repr(os.fsdecode(name)) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
        return f"error: {' and '.join(names) + ': ' if names else ''}{error.strerror or error}.", MISTAKE
    if isinstance(error, ImportError) and (error.name or "").partition(".")[0] in EXTRAS:
        module = (error.name or "").partition(".")[0]
        return f"error: this needs {module}: pip install 'torch-grit[{EXTRAS[module]}]'.", MISTAKE
    if isinstance(error, UnicodeError):
        return f"error: a name or a text is not valid Unicode: {error}.", MISTAKE
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return (
        f"internal error: {what[:500]} (a mistake in grit, not yours); set GRIT_TRACEBACK=1 to see all of it",
        INTERNAL,
    )


def _limit(error: BaseException | None) -> str | None:
    """What the machine had too little of, if that is behind an error."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _LIMITS - {errno.ENOMEM}:
            return f"{'the output' if error.filename is None else repr(error.filename)}: {error.strerror}."
        if lacks_memory(error):
            asked = re.search(r"allocate (\d+) bytes", str(error))
            size = f" for another {int(asked[1]) / 2**30:,.1f} GiB" if asked else ""
            return (
                f"not enough memory{size}. Use smaller batches (train.batch_size=...), a budget of pairs "
                "(train.max_pairs=...), a smaller model, or fewer --processes and --workers."
            )
        error = error.__cause__ or error.__context__
    return None
