"""Downloads from a hostile server: the official bytes, or a message and an empty folder."""

import functools
import hashlib
import socketserver
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

from grit.datasets.building import fetch
from grit.datasets.pipeline.source_files import SourceFile
from tests.fuzz.mutation import damaged

CONTENT = bytes(range(256)) * 20
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
_answers: dict[str, list[bytes | float]] = {}


class _Hostile(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        asked = self.rfile.readline(1000).split()
        try:
            for part in _answers.get(asked[1].decode() if len(asked) > 1 else "", []):
                time.sleep(part) if isinstance(part, float) else self.wfile.write(part)
        except OSError:
            pass  # the client has gone


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is what is tested."""


@functools.cache
def port() -> int:
    """Of the server of this process."""
    server = _Server(("127.0.0.1", 0), _Hostile)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return int(server.server_address[1])


def make_input(rng: Random) -> dict[str, Any]:
    """What the server answers, and whether a checksum is known."""
    good = HEAD % len(CONTENT) + CONTENT
    answer: list[Any]
    match rng.randint(0, 9):
        case 0:
            answer = [good]
        case 1:
            answer = [good[: rng.randint(0, len(good))]]
        case 2:
            answer = [HEAD % rng.choice([0, 1, len(CONTENT) - 1, len(CONTENT) + 1, 10**15]) + CONTENT]
        case 3:
            answer = [HEAD.replace(b"%d", rng.choice([b"-1", b"x", b"1e3", b"\xff", b"9" * 5000])) + CONTENT]
        case 4:
            code = rng.choice([404, 500, 301, 302, 204, 206, 304, 100, 999, 0])
            place = rng.choice(["/", "ftp://x", "file:///etc/passwd", "//", "http://[", ""])
            answer = [f"HTTP/1.1 {code} X\r\nLocation: {place}\r\n\r\n".encode()]
        case 5:
            answer = [
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                + rng.choice([b"5\r\nhello\r\n0\r\n\r\n", b"zz\r\n", b"ffffffffffffffff\r\nx", b"-5\r\n", b"5\r\nhe"])
            ]
        case 6:
            answer = [good[:50], 0.6, good[50:]]  # longer than the limit without an answer
        case 7:
            answer = [b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n" + CONTENT]
        case 8:
            answer = [b"X: y\r\n" * rng.choice([1, 300]) + good, b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 500 + b"\r\n"][
                :: rng.choice([1, -1])
            ]
        case _:
            answer = [damaged(rng, good)]
    return {
        "answer": answer,
        "checksum": rng.choice(["sha256", "md5", "sha256", "none"]),
        "number": rng.randint(0, 10**9),
    }


def try_it(value: dict[str, Any], folder: Path) -> None:
    """Download it."""
    path = f"/{value['number']}"
    _answers[path] = value["answer"]
    sums = (
        {} if value["checksum"] == "none" else {value["checksum"]: hashlib.new(value["checksum"], CONTENT).hexdigest()}
    )
    try:
        found = fetch(SourceFile("file.bin", f"http://127.0.0.1:{port()}{path}", **sums), folder, timeout=0.3)
    except ValueError:
        assert not list(folder.iterdir()), "something stays behind"
        raise
    finally:
        del _answers[path]
    assert [each.name for each in folder.iterdir()] == ["file.bin"]
    content = found.read_bytes()
    assert not sums or content == CONTENT
    assert b"root:" not in content, "a server made grit read a file of this machine"
