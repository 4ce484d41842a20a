"""Work that several processes share: in order, and nobody stays behind."""

import os
import select
import signal
import sys
import time

import pytest

from grit.datasets.pipeline.featurise_rows import in_order


def _slowly(number: int) -> int:
    time.sleep(0.05)
    return number


def test_results_come_in_order() -> None:
    assert list(in_order(_square, range(40), 2)) == [number**2 for number in range(40)]


def _square(number: int) -> int:
    time.sleep(0.01 if number % 3 == 0 else 0)
    return number**2


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_workers_end_when_their_parent_is_killed() -> None:
    """They would otherwise wait for ever, and hold the locks that they inherited."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        list(in_order(_slowly, range(10_000), 2))
        os._exit(0)
    os.close(writing)  # only the child and its workers hold it now: reading ends when the last of them does
    time.sleep(1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    ended = select.select([reading], [], [], 60)[0]
    os.close(reading)
    assert ended
