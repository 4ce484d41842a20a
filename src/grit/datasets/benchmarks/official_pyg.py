"""The files of PyG's ``GNNBenchmarkDataset``: one archive with one ``.pt`` that holds three lists of graphs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from grit.datasets.benchmarks.benchmark import BuildOptions, BuildPlan, Source, capped, consecutive
from grit.datasets.pipeline.featurise_rows import Piece, batched
from grit.datasets.pipeline.source_files import SourceFile, read_member, read_tensors
from grit.errors import GritError
from grit.graphs.chunk import Array, ArrayGraph, GraphChunk

_ADDRESS = "https://data.pyg.org/datasets/benchmarking-gnns/{}_v2.zip"


def official_source(name: str, sizes: tuple[int, int, int]) -> Source:
    """The source ``official`` of MNIST, CIFAR10, PATTERN or CLUSTER."""
    file = SourceFile(f"{name}_v2.zip", _ADDRESS.format(name))

    def read(folder: Path, options: BuildOptions) -> BuildPlan:
        counts = capped(sizes, options.limit)

        def pieces() -> Iterator[Piece]:
            splits = _load(folder / file.name, f"{name}_v2.pt")
            done = 0
            for graphs, (split, count) in zip(splits, counts.items(), strict=True):
                if len(graphs) < count:
                    raise GritError(f"{file.name}: {split} has {len(graphs)} graphs, expected {count}.")
                for batch in batched(graphs[:count], 256):
                    yield Piece(
                        GraphChunk.of([_graph(graph) for graph in batch]), np.arange(done, done + len(batch)), [], []
                    )
                    done += len(batch)

        return BuildPlan(sum(counts.values()), pieces(), consecutive(counts))

    return Source("official", (file,), read)


def _load(archive: Path, member: str) -> Any:
    content = read_tensors(read_member(archive, member), f"{member} in {str(archive)!r}")
    if (
        not isinstance(content, list | tuple)
        or len(content) != 3
        or not all(isinstance(part, list) for part in content)
    ):
        raise GritError(f"{member} in {str(archive)!r} does not hold three lists of graphs.")
    return content


def _graph(fields: dict[str, torch.Tensor]) -> ArrayGraph:
    """Coordinates, where there are any, follow the features; edge weights become one column."""
    try:
        x: Array = fields["x"].float().numpy()
        if "pos" in fields:
            x = np.concatenate([x, fields["pos"].float().numpy()], axis=1)
        edge_index = fields["edge_index"].long().numpy()
        weights = (
            fields["edge_attr"].float().reshape(-1, 1).numpy()
            if "edge_attr" in fields
            else np.zeros((edge_index.shape[1], 0), np.float32)
        )
        return ArrayGraph(x=x, edge_index=edge_index, edge_attr=weights, y=fields["y"].long().reshape(-1, 1).numpy())
    except (KeyError, TypeError, AttributeError, RuntimeError, ValueError) as error:
        raise GritError(f"a graph is not in the official form: {error!r}") from None
