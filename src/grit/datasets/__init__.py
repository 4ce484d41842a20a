"""Data sets: the table `DATASETS`, building and opening them, and your own data."""

from grit.datasets.benchmarks.benchmark import Benchmark, BuildOptions
from grit.datasets.building import build, is_built, load, load_schema, store_path, verify
from grit.datasets.own.graph_lists import from_networkx, from_pyg
from grit.datasets.own.molecule_tables import from_csv, from_smiles
from grit.datasets.pipeline.source_files import data_root
from grit.datasets.registry import DATASETS, find_dataset

__all__ = [
    "DATASETS",
    "Benchmark",
    "BuildOptions",
    "build",
    "data_root",
    "find_dataset",
    "from_csv",
    "from_networkx",
    "from_pyg",
    "from_smiles",
    "is_built",
    "load",
    "load_schema",
    "store_path",
    "verify",
]
