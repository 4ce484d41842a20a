from functools import partial

import networkx as nx
import pytest

import grit
from grit.cli.print_plot import parse_steps
from grit.datasets import build
from grit.datasets.benchmarks.benchmark import BuildOptions
from grit.drawing.read_drawing import MAX_NODES
from grit.errors import GritError
from grit.training.train import RunOptions, train
from tests.training.small import SMALL, small_recipe, small_store

SIGNATURES = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plot")
    store = build("zinc-mini", root=folder, options=BuildOptions(processes=1, limit=40))
    recipe = grit.load_recipe("zinc-mini", *SMALL, "train.epochs=1")
    train(recipe, folder / "run", store=store, options=RunOptions(device="cpu"))
    return folder / "run"


@pytest.fixture
def plot(command):
    return partial(command, "plot")


@pytest.mark.parametrize("ending", SIGNATURES)
def test_a_molecule_is_drawn(plot, tmp_path, ending):
    said = plot("rrwp", "c1ccccc1O", "--steps", "2", "-o", f"phenol{ending}")
    assert f"phenol{ending}: 7 atoms, 7 bonds; of 42 ordered pairs, walks join 14 by 1, 16 by 2 steps" in said
    assert "Next: grit plot attention RUN c1ccccc1O" in said
    assert (tmp_path / f"phenol{ending}").read_bytes().startswith(SIGNATURES[ending])


def test_the_same_picture_is_the_same_file(plot, tmp_path):
    for name in ("a.pdf", "b.pdf"):
        plot("rrwp", "CCO", "-o", name)
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()


def test_matrices_make_the_picture_larger(plot, tmp_path):
    plot("rrwp", "CCO", "--walk-steps", "1,2", "-o", "plain.svg")
    plot("rrwp", "CCO", "--walk-steps", "1,2", "--matrices", "-o", "both.svg")
    assert (tmp_path / "both.svg").read_text().count("<image") > (tmp_path / "plain.svg").read_text().count("<image")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.csv", "source,target,weight\na,b,1\nb,c,2\n# no edge\n\na,b,1\n"),
        ("g.csv", "a,b\nb,c\n"),
        ("g.tsv", "from\tto\na\tb\nb\tc\n"),
        ("g.txt", "a b\nb c extra\n"),
        ("g.edgelist", "\ufeff# heading\na b\n b  c\n"),
    ],
)
def test_edge_lists(plot, tmp_path, name, content):
    (tmp_path / name).write_text(content)
    said = plot("rrwp", name, "--steps", "2", "-o", "g.png")
    assert "3 nodes, 2 edges; of 6 ordered pairs, walks join 4 by 1, 2 by 2 steps" in said
    assert f"Next: grit plot rrwp {name} --steps 2,4,8,16" in said


@pytest.mark.parametrize(("ending", "write"), [("graphml", nx.write_graphml), ("gml", nx.write_gml)])
def test_graphml_and_gml_know_directions(plot, tmp_path, ending, write):
    write(nx.MultiDiGraph([("a", "b"), ("a", "b"), ("b", "c")]), tmp_path / f"g.{ending}")
    said = plot("rrwp", f"g.{ending}", "--steps", "1", "-o", "g.png")
    assert "3 nodes, 2 edges, directed and drawn without arrows; of 6 ordered pairs, walks join 2 by 1 step" in said


def test_attention_of_a_run(plot, tmp_path, run):
    said = plot("attention", run, "c1ccccc1O", "-o", "a.png")
    assert "a.png: 7 atoms, layer 1 of 0 to 1, mean of all heads of 0 to 1; most attended to is" in said
    plot("attention", run, "c1ccccc1O", "--layer", "0", "--head", "1", "--atom", "6", "-o", "b.png")
    assert (tmp_path / "a.png").read_bytes() != (tmp_path / "b.png").read_bytes()
    following = said.split("Next: grit plot ")[1].split()
    plot(*following)
    assert (tmp_path / "a-0.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rrwp", "C(", "-o", "x.png"], "'C(' is neither a file nor a readable SMILES (not valid SMILES)"),
        (["rrwp", "absent.csv", "-o", "x.png"], "there is no file 'absent.csv'"),
        (["rrwp", "other.dat", "-o", "x.png"], "'other.dat': a graph file must end in one of .csv"),
        (["rrwp", "short.csv", "-o", "x.png"], "'short.csv', line 2: expected the names of two nodes with ','"),
        (["rrwp", "empty.txt", "-o", "x.png"], "'empty.txt' has no nodes"),
        (["rrwp", "bad.graphml", "-o", "x.png"], "'bad.graphml' is not a readable .graphml file"),
        (["rrwp", "bad.gml", "-o", "x.png"], "'bad.gml' is not a readable .gml file"),
        (["rrwp", "bytes.csv", "-o", "x.png"], "'bytes.csv' is not a readable .csv file"),
        (["rrwp", "large.csv", "-o", "x.png"], f"'large.csv' has more than {MAX_NODES} nodes"),
        (["rrwp", "C" * (MAX_NODES + 1), "-o", "x.png"], f"the molecule has {MAX_NODES + 1} atoms"),
        (["rrwp", "C", "-o", "x.gif"], "cannot write 'x.gif': its ending must be one of .png, .svg, .pdf"),
        (["rrwp", "C", "-o", "no/x.png"], "there is no folder 'no'"),
        (["rrwp", "C", "-o", "folder.png"], "cannot write 'folder.png'"),
        (["rrwp", "C", "--steps", "x", "-o", "x.png"], "--steps takes a number such as 4"),
        (["attention", "absent", "C", "-o", "x.png"], "'absent' is not a run folder"),
        (["attention", "RUN", "C", "--layer", "2", "-o", "x.png"], "has the layers 0 to 1"),
        (["attention", "RUN", "C", "--head", "-1", "-o", "x.png"], "has the heads 0 to 1"),
        (["attention", "RUN", "CC", "--atom", "2", "-o", "x.png"], "--atom 2: the molecule 'CC' has the atoms 0 to 1"),
        (["attention", "RUN", "C(", "-o", "x.png"], "cannot read the SMILES 'C(': not valid SMILES"),
        (["attention", "RUN", "C", "-o", "x.gif"], "its ending must be one of"),
    ],
)
def test_mistakes_are_one_message(plot, tmp_path, run, arguments, message):
    (tmp_path / "other.dat").write_text("a b")
    (tmp_path / "short.csv").write_text("a,b\nc\n")
    (tmp_path / "empty.txt").write_text("# nothing\n")
    (tmp_path / "bad.graphml").write_text("<graphml><graph>")
    (tmp_path / "bad.gml").write_text("graph [ node [ id")
    (tmp_path / "bytes.csv").write_bytes(b"a,\xff\n")
    (tmp_path / "large.csv").write_text("".join(f"{k},{k + 1}\n" for k in range(MAX_NODES + 1)))
    (tmp_path / "folder.png").mkdir()
    said = plot(*[str(run) if each == "RUN" else each for each in arguments], code=2)
    assert message in said
    assert said.startswith("error: ")
    assert not (tmp_path / "x.png").exists()


def test_a_run_on_other_graphs_has_no_molecules_to_show(plot, tmp_path):
    train(small_recipe("train.epochs=1"), tmp_path / "run", store=small_store(), options=RunOptions(device="cpu"))
    said = plot("attention", tmp_path / "run", "CCO", "-o", "x.png", code=2)
    assert "whose graphs were not made from SMILES" in said


def test_parse_steps():
    assert parse_steps("3") == [1, 2, 3]
    assert parse_steps("8,1,2,2") == [1, 2, 8]
    for wrong in ("", "0", "-1", "1,x", "101"):
        with pytest.raises(GritError, match="--steps takes a number"):
            parse_steps(wrong)
    with pytest.raises(GritError, match="40 panels; at most 16"):
        parse_steps("40")
    assert len(parse_steps("16")) == 16


def test_the_longest_walks_that_are_drawn():
    assert parse_steps("1,100") == [1, 100]
