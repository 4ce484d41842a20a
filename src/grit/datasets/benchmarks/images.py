"""Superpixel graphs from images, the common part of MNIST and CIFAR10."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from grit.datasets.benchmarks.benchmark import BuildOptions, BuildPlan, Source, capped, consecutive
from grit.datasets.benchmarks.superpixels import SuperpixelSettings, superpixel_graph
from grit.datasets.pipeline.featurise_rows import graph_pieces
from grit.datasets.pipeline.source_files import SourceFile
from grit.errors import GritError
from grit.graphs.chunk import Array, ArrayGraph

NOTE = (
    "made from images with the installed scikit-image: graphs of the same kind as the official ones, not the same graphs "
    "(0.26 gives fewer nodes than 0.14, which made the official files, on some images)"
)


class Images(NamedTuple):
    """Images (n, S, S) or (n, S, S, 3) uint8 with their labels (n,), of the training and the test set."""

    train: Array
    train_labels: Array
    test: Array
    test_labels: Array


@dataclass(frozen=True)
class _ImageGraph:
    """Graph number k of a data set; the order of its nodes depends on seed and k alone."""

    images: Array
    labels: Array
    settings: SuperpixelSettings
    seed: int

    def __call__(self, number: int) -> ArrayGraph:
        rng = np.random.default_rng([self.seed, number])
        return superpixel_graph(self.images[number], label=int(self.labels[number]), rng=rng, **asdict(self.settings))


def _check(images: Images, where: str) -> None:
    for pixels, labels in ((images.train, images.train_labels), (images.test, images.test_labels)):
        square = pixels.ndim in (3, 4) and pixels.shape[1] == pixels.shape[2] and pixels.shape[3:] in ((), (3,))
        if not square or pixels.dtype != np.uint8 or labels.shape != pixels.shape[:1] or labels.dtype.kind not in "iu":
            raise GritError(
                f"the images in {where!r} are {pixels.dtype} {pixels.shape} with labels {labels.dtype} {labels.shape}."
            )
        if labels.size and (int(labels.min()) < 0 or int(labels.max()) > 9):
            raise GritError(f"the labels in {where!r} are not all 0 to 9.")


def image_source(
    name: str,
    files: tuple[SourceFile, ...],
    load: Callable[[Path], Images],
    settings: SuperpixelSettings,
    validation: int,
) -> Source:
    """A source that turns images into graphs; the first ``validation`` training images are the validation set."""
    return Source(name, files, partial(_read, load=load, settings=settings, validation=validation), NOTE)


def _read(
    folder: Path,
    options: BuildOptions,
    *,
    load: Callable[[Path], Images],
    settings: SuperpixelSettings,
    validation: int,
) -> BuildPlan:
    images = load(folder)
    _check(images, str(folder))
    counts = capped((len(images.train) - validation, validation, len(images.test)), options.limit)
    train = slice(validation, validation + counts["train"])
    parts = [(images.train, images.train_labels, train), (images.train, images.train_labels, slice(0, counts["val"]))]
    parts.append((images.test, images.test_labels, slice(0, counts["test"])))
    make = _ImageGraph(
        np.concatenate([each[0][each[2]] for each in parts]),
        np.concatenate([each[1][each[2]] for each in parts]),
        settings,
        options.seed or 0,
    )
    total = sum(counts.values())
    return BuildPlan(total, graph_pieces(make, total, options.num_processes), consecutive(counts))
