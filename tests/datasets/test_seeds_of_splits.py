"""The seed that a user gives to a build decides its random split."""

from grit.datasets import build
from grit.datasets.benchmark import BuildOptions


def test_another_seed_is_another_split(tmp_path):
    heading = "smiles,measured log solubility in mols per litre\n"
    (tmp_path / "esol.csv").write_text(heading + "".join(f"{'C' * n}O,{n / 2}\n" for n in range(1, 41)))
    default, zero, one, again = (
        build("esol", root=tmp_path / f"{number}", folder=tmp_path, options=BuildOptions(processes=1, seed=seed)).splits
        for number, seed in enumerate((None, 0, 1, 1))
    )
    for name in ("train", "val", "test"):
        assert one[name].tolist() == again[name].tolist()
        assert one[name].tolist() != zero[name].tolist()
        assert default[name].tolist() == zero[name].tolist()
        assert one[name].size == zero[name].size
