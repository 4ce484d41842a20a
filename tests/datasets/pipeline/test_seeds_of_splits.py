"""The tables of MoleculeNet: the seed that a user gives decides a random split; a scaffold split keeps scaffolds together."""

import gzip

import pytest

from grit.datasets import DATASETS, build
from grit.datasets.benchmarks.benchmark import BuildOptions

RINGS = ["c1ccccc1", "c1ccncc1", "c1ccoc1", "c1ccsc1", *(f"C1{'C' * n}C1" for n in range(1, 9))]
SMILES = [f"{'C' * n}{ring}" for n in range(1, 5) for ring in RINGS]  # twelve scaffolds of four molecules each


def splits_of(name, folder, seed):
    """Row numbers of each split, of a table with a column for every target of the data set."""
    source = next(source for source in DATASETS[name].sources if source.name == "table")
    heading, columns = source.read.keywords["smiles"], source.read.keywords["columns"]
    lines = [",".join([heading, *columns])]
    lines += [",".join([smiles, *[str(number % 2)] * len(columns)]) for number, smiles in enumerate(SMILES)]
    table = folder / source.files[0].name.removesuffix(".gz")
    table.write_text("\n".join(lines) + "\n")
    if source.files[0].name.endswith(".gz"):
        (folder / source.files[0].name).write_bytes(gzip.compress(table.read_bytes()))
    store = build(
        name,
        root=folder / f"root{seed}",
        folder=folder,
        how="table",
        options=BuildOptions(processes=1, seed=seed),
        overwrite=True,
    )
    return {split: members.tolist() for split, members in store.splits.items()}


@pytest.mark.parametrize("name", ["esol", "tox21", "qm9-gap"])
def test_another_seed_is_another_random_split(tmp_path, name):
    default, zero, one, again = (splits_of(name, tmp_path, seed) for seed in (None, 0, 1, 1))
    for split in ("train", "val", "test"):
        assert one[split] == again[split] != zero[split]
        assert default[split] == zero[split]
        assert len(one[split]) == len(zero[split])


def test_a_scaffold_split_has_no_seed(tmp_path):
    zero, one = (splits_of("bbbp", tmp_path, seed) for seed in (0, 1))
    assert zero == one
    rings = {split: {RINGS[number % len(RINGS)] for number in members} for split, members in zero.items()}
    assert sum(map(len, rings.values())) == len(RINGS)  # no scaffold in two splits
    assert all(rings.values())
