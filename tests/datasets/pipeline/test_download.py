"""Downloads from servers that are broken, slow or hostile: a file that is whole, or one error and nothing left behind."""

import gc
import gzip
import io
import itertools
import os
import random
import signal
import socket
import struct
import threading
import time
import zipfile
from contextlib import suppress
from types import SimpleNamespace

import pytest

import grit
from grit.datasets.pipeline import download
from grit.datasets.pipeline.download import fetch
from grit.datasets.pipeline.source_files import SourceFile

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
OK = b"HTTP/1.1 200 OK\r\n"


class Server:
    """Sends the same bytes to everyone; floats among them are pauses in seconds, None resets the connection."""

    def __init__(self):
        self.script = []
        self.closing = threading.Event()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/"
        self.threads = [threading.Thread(target=self.serve)]
        self.threads[0].start()

    def serve(self):
        with suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                self.threads.append(threading.Thread(target=self.answer, args=(connection,)))
                self.threads[-1].start()

    def answer(self, connection):
        with connection, suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(4096)
            for part in self.script:
                if self.closing.is_set():
                    return
                if isinstance(part, float):
                    self.closing.wait(part)
                elif part is None:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
                else:
                    connection.sendall(part)

    def close(self):
        self.closing.set()
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for thread in self.threads:
            thread.join(60)


@pytest.fixture
def server():
    running = Server()
    yield running
    running.close()
    gc.collect()  # urllib leaves some connections to be closed when they are forgotten: here, and not in another test


def whole(body):
    return [OK + f"Content-Length: {len(body)}\r\n\r\n".encode() + body]


def trickle(start):
    return [start, *[0.05, b"a"] * 4000]


HOSTILE = {
    "cut short": ([OK + b"Content-Length: 10\r\n\r\nhello"], "ended after 5 of 10 bytes"),
    "no answer": ([], "closed connection without response|reset"),
    "bad status line": ([b"<html>\r\n\r\n"], "html"),
    "bad status": ([b"HTTP/1.1 abc OK\r\n\r\n"], "abc"),
    "oversized header": ([OK + b"X: " + b"a" * 70_000 + b"\r\n\r\n"], "more than 65536 bytes"),
    "too many headers": ([OK + b"X: a\r\n" * 200 + b"\r\n"], "more than 100 headers"),
    "redirect loop": ([b"HTTP/1.1 302 Found\r\nLocation: /file\r\nContent-Length: 0\r\n\r\n"], "infinite loop"),
    "redirect to a file": ([b"HTTP/1.1 302 Found\r\nLocation: file:///etc/hosts\r\n\r\n"], "not allowed"),
    "redirect to nowhere": ([b"HTTP/1.1 302 Found\r\nLocation: http://[::1\r\n\r\n"], "IPv6"),
    "length below zero": ([OK + b"Content-Length: -5\r\n\r\nhello"], "-5 bytes"),
    "length that is none": ([OK + b"Content-Length: five\r\n\r\nhello"], "five"),
    "length beyond all": ([OK + b"Content-Length: 99999999999999\r\n\r\nhello"], "larger than"),
    "not found": ([b"HTTP/1.1 404 Not \x1b[31mFound\r\nContent-Length: 0\r\n\r\n"], r"404: Not \?\[31mFound"),
    "server error": ([b"HTTP/1.1 500 Oops\r\n\r\n"], "500: Oops"),
    "long reason": ([b"HTTP/1.1 500 " + b"o" * 60_000 + b"\r\n\r\n"], "500: ooo"),
    "reset": ([OK + b"Content-Length: 10\r\n\r\nhel", 0.05, None], "reset|ended after"),
    "bad chunk": ([OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"], "IncompleteRead"),
    "chunk cut short": ([OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhe"], "IncompleteRead"),
    "silence": ([60.0], "only 0 bytes came in 1 seconds|timed out"),
    "header byte by byte": (trickle(OK), "only 0 bytes came in 1 seconds"),
    "body byte by byte": (trickle(OK + b"Content-Length: 4000\r\n\r\n"), r"only \d+ bytes came in 1 seconds"),
    "endless": ([OK + b"\r\n", *[b"a" * 4096] * 4096], "larger than 1,048,576 bytes"),
    "endless chunks": (
        [OK + b"Transfer-Encoding: chunked\r\n\r\n", *[b"1000\r\n" + b"a" * 4096 + b"\r\n"] * 4096],
        "larger than 1,048,576 bytes",
    ),
    "not the file": (whole(b"<html>login</html>"), "what came is not the official file: its md5 is"),
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_servers(name, server, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "LARGEST", 1 << 20)
    server.script, message = HOSTILE[name]
    file = SourceFile("file", server.url + "file", md5="5d41402abc4b2a76b9719d911017c592")
    with pytest.raises(grit.GritError, match=message) as error:
        fetch(file, tmp_path / "here", timeout=1 if "in 1 seconds" in message else 60)
    assert file.url in str(error.value)
    assert str(tmp_path / "here" / "file") in str(error.value)
    assert "--from" in str(error.value)
    assert len(str(error.value)) < 800
    assert str(error.value).replace("\n", "").isprintable()
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize("name", ["data.csv.gz", "data.tar.gz", "data.zip"])
@pytest.mark.parametrize("kind", ["html", "rubbish", "cut", "whole"])
def test_archives_without_a_known_checksum_must_be_archives(name, kind, server, tmp_path):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        archive.writestr("member", b"text" * 100)
    good = memory.getvalue() if name.endswith(".zip") else gzip.compress(b"text" * 100)
    rubbish = good[:12] + bytes(reversed(good[12:]))
    server.script = whole({"html": b"<html></html>", "rubbish": rubbish, "cut": good[:-5], "whole": good}[kind])
    file = SourceFile(name, server.url)
    if kind == "whole":
        assert fetch(file, tmp_path).read_bytes() == good
        return
    with pytest.raises(grit.GritError, match=f"what came is not a .{name.split('.')[-1]} file, or not all of it"):
        fetch(file, tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / name).write_bytes(b"put here by hand")
    with pytest.raises(grit.GritError, match="Delete it and download it again"):
        fetch(file, tmp_path)


def test_whatever_a_server_sends(server, tmp_path):
    """Random changes of a sound answer: our own error, or a file as the server stated it."""
    rng = random.Random(3)
    sound = OK + b"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nworld\r\n0\r\n\r\n"
    for number in range(150):
        answer = bytearray(sound if number % 2 else whole(b"helloworld")[0])
        for _ in range(rng.choice([1, 2, 5])):
            place = rng.randrange(len(answer))
            answer[place : place + rng.choice([0, 1, 1, 4])] = rng.choice(
                [b"\n", b"\r\n", b"\0", b"-", b"9", rng.randbytes(2)]
            )
        server.script = [bytes(answer)]
        try:
            fetch(SourceFile("file", server.url), tmp_path / str(number), timeout=5)
        except grit.GritError as error:
            assert "--from" in str(error)
            assert list((tmp_path / str(number)).iterdir()) == []


def test_a_long_download_is_not_a_stalled_one(server, tmp_path, monkeypatch):
    """By a clock that runs fast: every block takes longer than the time-out, and each is enough."""
    monkeypatch.setattr(download, "SLOWEST", 0.01)
    monkeypatch.setattr(download, "time", SimpleNamespace(monotonic=itertools.count(0, 20).__next__))
    server.script = [OK + b"Content-Length: 12\r\n\r\n", *[0.02, b"aaa"] * 4]
    assert fetch(SourceFile("file", server.url), tmp_path, timeout=30).read_bytes() == b"a" * 12


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_what_a_killed_download_left_is_removed_by_the_next(server, tmp_path):
    server.script = [OK + b"Content-Length: 12\r\n\r\nhalf", 60.0]
    file = SourceFile("file", server.url)
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            fetch(file, tmp_path, timeout=60)
        os._exit(0)
    for _ in range(3000):
        if any(tmp_path.iterdir()):
            break
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert [each.name.endswith(".part") for each in tmp_path.iterdir()] == [True]
    server.script = whole(b"all of it")
    assert fetch(file, tmp_path).read_bytes() == b"all of it"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_place_that_cannot_be_written(server, tmp_path):
    server.script = whole(b"x")
    (tmp_path / "file").write_text("in the way")
    for folder, name in ((tmp_path / "file" / "inside", "x"), (tmp_path, "n" * 300)):
        with pytest.raises(grit.GritError, match="cannot write"):
            fetch(SourceFile(name, server.url), folder)


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_whatever_goes_wrong_in_reading_is_told_at_once(tmp_path, monkeypatch):
    def broken(url, timeout):
        raise KeyError("no such thing")

    monkeypatch.setattr("urllib.request.urlopen", broken)
    start = time.monotonic()
    with pytest.raises(grit.GritError, match="cannot download a.zip .*KeyError: 'no such thing'"):
        fetch(SourceFile("a.zip", "http://127.0.0.1/"), tmp_path, timeout=20)
    assert time.monotonic() - start < 10
    assert list(tmp_path.iterdir()) == []
