"""MNIST as graphs of superpixels (Dwivedi et al. 2020)."""

import gzip
import zlib
from pathlib import Path

import numpy as np

from grit.datasets.benchmarks.benchmark import Benchmark, Published
from grit.datasets.benchmarks.images import Images, image_source
from grit.datasets.benchmarks.official_pyg import official_source
from grit.datasets.benchmarks.superpixels import MNIST as SETTINGS
from grit.datasets.pipeline.source_files import SourceFile
from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.schema import Features, GraphSchema, TaskSpec

_ADDRESS = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_FILES = tuple(
    SourceFile(name, _ADDRESS + name, md5=md5)
    for name, md5 in (
        ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
    )
)


def read_idx(path: Path) -> Array:
    """An array in the IDX format: two zero bytes, type 8 (bytes), number of axes, their lengths, the bytes."""
    try:
        data = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise GritError(f"cannot read {str(path)!r}: {error}") from None
    if len(data) < 4 or data[:3] != b"\x00\x00\x08" or len(data) < 4 + 4 * data[3]:
        raise GritError(f"{str(path)!r} is not an IDX file of bytes.")
    shape = [int.from_bytes(data[4 + 4 * axis : 8 + 4 * axis], "big") for axis in range(data[3])]
    body = np.frombuffer(data, dtype=np.uint8, offset=4 + 4 * data[3])
    if body.size != np.prod(shape, dtype=np.float64):
        raise GritError(f"{str(path)!r} has {body.size} bytes of data, its header says {shape}.")
    return body.reshape(shape)


def _load(folder: Path) -> Images:
    return Images(*(read_idx(folder / file.name) for file in _FILES))


MNIST = Benchmark(
    name="mnist",
    title="MNIST superpixels, 70,000 graphs: ten digits",
    schema=GraphSchema(
        node=Features(kind="numeric", sizes=(3,)), edge=Features(kind="numeric", sizes=(1,)), num_outputs=10
    ),
    task=TaskSpec(
        kind="multiclass",
        targets=("digit",),
        classes=tuple("0123456789"),
        loss="cross_entropy",
        metric="accuracy",
    ),
    published=Published(graphs=70_000, nodes=70.57, edges=564.53),
    sources=(
        official_source("MNIST", (55_000, 5_000, 10_000)),
        image_source("images", _FILES, _load, SETTINGS, validation=5_000),
    ),
)
