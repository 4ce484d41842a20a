"""From bytes to lines of text: UTF-8, UTF-16 with its mark, or what Western Windows machines write without saying so.

The whole file is looked at before its first line is given. If all of it is UTF-8, it is UTF-8. If no line with other characters
than ASCII is UTF-8, it is Windows-1252, which holds Latin-1; the note says so, because it cannot be told from other
one-byte encodings. A file in which both kinds of lines stand was damaged or put together, and is refused with a line of each.
"""

import codecs
import io
from collections.abc import Iterator
from typing import NamedTuple

from grit.datasets.tables.source import TableSource
from grit.errors import GritError

MAX_CHARACTERS = 10_000_000  # of a line
_LINE_ENDS = ("\n", "\r")
_BLOCK = 1 << 20
_MARKS = {  # the longer ones first
    codecs.BOM_UTF32_LE: None,
    codecs.BOM_UTF32_BE: None,
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_BINARY = {
    b"PK\x03\x04": "an Excel workbook or another zip archive; an Excel workbook must be called .xlsx",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook. Save it as .xlsx or CSV",
    b"PAR1": "a Parquet file; such a file must be called .parquet",
    b"%PDF": "a PDF. Export its table as CSV",
}


class TextEncoding(NamedTuple):
    """How bytes become text, and a sentence about it if a user should know."""

    name: str
    note: str | None


def encoding_of(source: TableSource, asked: str | None = None) -> TextEncoding:
    """The encoding that a user names, or the one that is recognised."""
    if asked is None:
        return recognise_encoding(source)
    try:
        name = codecs.lookup(asked).name
        "".encode(name)
    except LookupError:  # an unknown name, or one that does not turn text into bytes
        raise GritError(f"--encoding {asked!r} is unknown; expected e.g. utf-8, utf-16, cp1252 or latin-1.") from None
    return TextEncoding("utf-8-sig" if name == "utf-8" else name, None)


def recognise_encoding(source: TableSource) -> TextEncoding:
    """The encoding of a file of text, from its beginning and from all of its bytes."""
    with source.reading():
        stream = source.stream()
        first = stream.read(_BLOCK)
        for magic, what in _BINARY.items():
            if first.startswith(magic):
                raise source.unreadable(f"it is not text but {what}")
        for mark, name in _MARKS.items():
            if first.startswith(mark):
                if name is None:
                    raise source.unreadable("it is UTF-32 text. Save it as UTF-8")
                return TextEncoding(name, f"{source.path.name} is read as UTF-16 (--encoding names another).")
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while first:
                decoder.decode(first)
                first = stream.read(_BLOCK)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return _other_encoding(source)
    return TextEncoding("utf-8-sig", None)


def _other_encoding(source: TableSource) -> TextEncoding:
    """Of a file that is not UTF-8; bytes that are not UTF-8 pass as lone surrogates, so that their lines can be named."""
    utf8, other = 0, 0
    text = io.TextIOWrapper(source.stream(), encoding="utf-8", errors="surrogateescape", newline="")
    for number, line in enumerate(_cut_lines(text), 1):
        if line.isascii():
            continue
        try:
            line.encode()
            utf8 = utf8 or number
        except UnicodeEncodeError:
            other = other or number
            try:
                line.encode("utf-8", "surrogateescape").decode("cp1252")
            except UnicodeDecodeError:
                raise source.unreadable(
                    f"line {number} is neither UTF-8 nor Windows-1252 text. Save it as UTF-8; spreadsheets call that CSV UTF-8"
                ) from None
        if utf8 and other:
            raise source.unreadable(
                f"line {other} is not UTF-8 text, but line {utf8} is. Save it as UTF-8; spreadsheets call that CSV UTF-8"
            )
    return TextEncoding(
        "cp1252",
        f"{source.path.name} is not UTF-8 (line {other}) and is read as Windows-1252; --encoding names another.",
    )


def read_lines(source: TableSource, encoding: TextEncoding) -> Iterator[str]:
    """The lines with their ends. Of one that is far too long its beginning, so that its length shows."""
    number = 0
    with source.reading():
        text = io.TextIOWrapper(source.stream(), encoding=encoding.name, newline="")
        try:
            for line in _cut_lines(text):
                number += 1
                yield line
        except UnicodeError:
            raise source.unreadable(
                f"line {number + 1} is not {encoding.name.upper()} text. Save it as UTF-8"
            ) from None


def _cut_lines(text: io.TextIOWrapper) -> Iterator[str]:
    while line := text.readline(MAX_CHARACTERS + 1):
        rest = line
        while len(rest) > MAX_CHARACTERS and not rest.endswith(_LINE_ENDS):
            rest = text.readline(MAX_CHARACTERS + 1)
        yield line
