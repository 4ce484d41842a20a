"""Your own table of molecules: read it, train, evaluate, predict.

The same from the command line: ``grit fit FILE.csv --target COLUMN`` and ``grit predict RUN FILE.csv -o OUT.csv``.
"""

import csv
import tempfile
from pathlib import Path

import grit
from grit.datasets import from_csv
from grit.datasets.benchmarks.zinc_mini import bundled_smiles
from grit.recipe.presets import preset_recipe


def write_table(path):
    """A stand-in for your file: how many oxygen atoms a molecule has, and one row that cannot be read."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["smiles", "oxygens"])
        for smiles in bundled_smiles()[:200]:
            writer.writerow([smiles, smiles.upper().count("O") + 0.5])
        writer.writerow(["not a molecule", 1.5])


def main(epochs=4):
    folder = Path(tempfile.mkdtemp())
    write_table(folder / "mine.csv")
    store = from_csv(folder / "mine.csv", targets="oxygens", split="random", processes=1, say=print)
    print(store, "skipped:", [(row.line, row.reason) for row in store.skipped])
    recipe = preset_recipe("fast", store.schema, f"train.epochs={epochs}", "model.num_layers=2", "model.pooling=sum")
    result = grit.train(recipe, folder / "run", store=store)
    print("test:", result["test"])
    predictor = grit.load(folder / "run")
    print("ethanol, glycerol:", predictor.predict(["CCO", "OCC(O)CO"])[:, 0])
    return result, predictor


if __name__ == "__main__":
    main()
