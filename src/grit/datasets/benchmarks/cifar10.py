"""CIFAR10 as graphs of superpixels (Dwivedi et al. 2020)."""

from pathlib import Path

import numpy as np

from grit.datasets.benchmarks.benchmark import Benchmark, Published
from grit.datasets.benchmarks.images import Images, image_source
from grit.datasets.benchmarks.official_pyg import official_source
from grit.datasets.benchmarks.superpixels import CIFAR10 as SETTINGS
from grit.datasets.pipeline.source_files import SourceFile, read_member, read_npz
from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.schema import Features, GraphSchema, TaskSpec

_BINARY = SourceFile(
    "cifar-10-binary.tar.gz",
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    md5="c32a1d4ab5d03f1284b67883e8d87530",
)
_SUBSET = SourceFile("cifar10_subset.npz")
_RECORD = 1 + 3 * 32 * 32


def _load_binary(folder: Path) -> Images:
    archive = folder / _BINARY.name
    batches = [_records(read_member(archive, f"data_batch_{number}.bin")) for number in range(1, 6)]
    test, test_labels = _records(read_member(archive, "test_batch.bin"))
    return Images(
        np.concatenate([images for images, _ in batches]),
        np.concatenate([labels for _, labels in batches]),
        test,
        test_labels,
    )


def _records(data: bytes) -> tuple[Array, Array]:
    """Records of one label and 32 x 32 bytes of each colour."""
    if not data or len(data) % _RECORD:
        raise GritError(f"a CIFAR10 batch has {len(data):,} bytes, expected a multiple of {_RECORD}.")
    records = np.frombuffer(data, dtype=np.uint8).reshape(-1, _RECORD)
    return records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), records[:, 0].astype(np.int64)


def _load_subset(folder: Path) -> Images:
    arrays = read_npz(folder / _SUBSET.name, ("x_train", "y_train", "x_test", "y_test"))
    return Images(arrays["x_train"], arrays["y_train"], arrays["x_test"], arrays["y_test"])


CIFAR10 = Benchmark(
    name="cifar10",
    title="CIFAR10 superpixels, 60,000 graphs: ten kinds of things",
    schema=GraphSchema(
        node=Features(kind="numeric", sizes=(5,)), edge=Features(kind="numeric", sizes=(1,)), num_outputs=10
    ),
    task=TaskSpec(
        kind="multiclass",
        targets=("class",),
        classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
        loss="cross_entropy",
        metric="accuracy",
    ),
    published=Published(graphs=60_000, nodes=117.63, edges=941.1),
    sources=(
        official_source("CIFAR10", (45_000, 5_000, 10_000)),
        image_source("images", (_BINARY,), _load_binary, SETTINGS, validation=5_000),
        image_source("subset", (_SUBSET,), _load_subset, SETTINGS, validation=1_000),
    ),
)
