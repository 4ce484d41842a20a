import tempfile

import pytest
import torch
from pydantic import BaseModel
from torch_geometric.data import Data

import grit
from grit.datasets import DATASETS
from grit.graphs.store import GraphStore
from grit.graphs.store_format import REQUIRED
from grit.recipe.bounded_yaml import parse_yaml
from grit.recipe.builder import build_model
from grit.recipe.config import Recipe
from grit.recipe.load import load_recipe, recipe_title, recipe_yaml, recipes, scale_warmup
from grit.recipe.model_config import wanted_statistics
from grit.recipe.presets import preset_recipe
from grit.training.checkpoint import read_checkpoint
from grit.training.run_folder import RunFolder
from grit.training.train import RunOptions, train
from tests.training.small import small_store

BENCHMARKS = [
    "zinc",
    "zinc-full",
    "mnist",
    "cifar10",
    "pattern",
    "cluster",
    "peptides-func",
    "peptides-struct",
    "pcqm4mv2",
]


def test_a_recipe_that_names_only_its_data_is_the_papers_zinc_but_shorter():
    """Defaults are a promise to users' own files: they may not change unnoticed."""
    paper = load_recipe("zinc")
    own = Recipe(dataset="zinc")
    assert (own.encoding, own.plugins) == (paper.encoding, ())
    assert own.model.model_copy(update={"attention_dropout": 0.2}) == paper.model
    assert own.train.model_copy(update={"epochs": 2000, "warmup_epochs": 50}) == paper.train


def example_batch(recipe):
    """Two small graphs with the features of the recipe's data set."""
    schema = DATASETS[recipe.dataset].schema
    generator = torch.Generator().manual_seed(0)
    graphs = []
    for edges in ([[0, 1, 2, 3, 3], [1, 2, 3, 0, 1]], [[0, 1, 1], [1, 0, 2]]):
        edge_index = torch.tensor(edges)
        n = int(edge_index.max()) + 1
        data = Data(edge_index=torch.cat([edge_index, edge_index.flip(0)], 1), num_nodes=n)
        for name, features, rows in (("x", schema.node, n), ("edge_attr", schema.edge, data.num_edges)):
            if features.kind == "numeric":
                data[name] = torch.rand(rows, features.width, generator=generator)
            elif features.kind != "none":
                data[name] = torch.cat(
                    [torch.randint(size, (rows, 1), generator=generator) for size in features.sizes], 1
                )
        graphs.append(data)
    return grit.build_batch(recipe, graphs)


@pytest.mark.parametrize("name", grit.recipes())
def test_every_recipe_builds_and_predicts(name):
    recipe = grit.load_recipe(name)
    schema = DATASETS[recipe.dataset].schema
    statistics = {key: [0, 10, 20, 10] for key in wanted_statistics(recipe.model.name)}
    model = grit.build_model(recipe, statistics=statistics)
    batch = example_batch(recipe)
    rows = {"graph": batch.num_graphs, "node": batch.num_nodes}[schema.level]
    predicted = model(batch)
    assert predicted.shape == (rows, schema.num_outputs)
    assert torch.isfinite(predicted).all()


def test_every_benchmark_has_its_recipe():
    assert set(BENCHMARKS) <= set(grit.recipes())
    assert {grit.load_recipe(name).dataset for name in BENCHMARKS} == set(BENCHMARKS)


@pytest.mark.parametrize("name", grit.recipes())
def test_survives_yaml(name, tmp_path):
    recipe = grit.load_recipe(name)
    (tmp_path / "mine.yaml").write_text(recipe_yaml(recipe))
    assert grit.load_recipe(tmp_path / "mine.yaml") == recipe


def test_hyperparameters_of_the_released_configurations():
    """Layers, width, heads, K, dropouts, batch, lr, decay, epochs, warm-up, as listed in the released files."""
    table = """
    zinc            10  64 8 21 0.0  0.2  32 1e-3 1e-5 2000 50 cosine
    zinc-full       10  64 8 21 0.0  0.2 256 1e-3 1e-5 2000 50 cosine
    mnist            3  52 4 18 0.0  0.5  16 1e-3 1e-5  200  5 cosine
    cifar10          3  52 4 18 0.0  0.5  16 1e-3 1e-5  200  5 cosine
    pattern         10  64 8 21 0.0  0.2  32 5e-4 1e-5  100  5 cosine
    cluster         16  48 8 32 0.01 0.5  16 1e-3 1e-5  100  5 cosine
    peptides-func    4  96 4 17 0.0  0.5  16 3e-4 0.0   200 10 cosine
    peptides-struct  4  96 8 24 0.05 0.2  16 3e-4 0.0   200 10 cosine
    pcqm4mv2        16 256 8 16 0.1  0.1 256 2e-4 0.0   150 10 linear
    """
    for line in table.strip().splitlines():
        name, *numbers, schedule = line.split()
        recipe = grit.load_recipe(name)
        m, t = recipe.model, recipe.train
        got = [m.num_layers, m.hidden_dim, m.num_heads, recipe.encoding.walk_steps, m.dropout, m.attention_dropout]
        got += [t.batch_size, t.lr, t.weight_decay, t.epochs, t.warmup_epochs]
        assert got == [float(number) for number in numbers], name
        assert t.schedule == schedule
        assert m.clamp == 5.0
        assert t.clip_norm == 1.0


@pytest.mark.parametrize(
    ("name", "differences"),
    [
        ("cluster", {"train.lr": 5e-4}),
        ("peptides-func", {"train.batch_size": 32, "train.warmup_epochs": 5}),
        (
            "peptides-struct",
            {"model.dropout": 0.0, "model.attention_dropout": 0.5, "train.batch_size": 32, "train.warmup_epochs": 5},
        ),
    ],
)
def test_paper_variants_change_what_the_paper_says(name, differences):
    released, paper = leaves(grit.load_recipe(name)), leaves(grit.load_recipe(f"{name}-paper"))
    assert {path: paper[path] for path in paper if paper[path] != released[path]} == differences


def leaves(tree, prefix=""):
    found = {}
    for name in type(tree).model_fields:
        value = getattr(tree, name)
        if isinstance(value, BaseModel):
            found.update(leaves(value, f"{prefix}{name}."))
        else:
            found[prefix + name] = value
    return found


PERTURBATIONS = {
    "dataset": "zinc-full",
    "encoding.name": "spd",
    "encoding.walk_steps": "7",
    "model.name": "gine",
    "model.num_layers": "3",
    "model.hidden_dim": "32",
    "model.num_heads": "4",
    "model.dropout": "0.5",
    "model.attention_dropout": "0.5",
    "model.attention": "graphormer model.update_pairs=false",
    "model.pairs": "edges",
    "model.degree": "none",
    "model.update_pairs": "false",
    "model.norm": "layer",
    "model.clamp": "0.01",
    "model.activation": "gelu",
    "model.pooling": "mean",
    "model.head": "mlp",
    "model.head_layers": "2",
    "train.batch_size": "10",
    "train.epochs": "5",
    "train.warmup_epochs": "2",
    "train.optimizer": "sgd",
    "train.schedule": "linear",
    "train.loss": "mse",
    "train.metric": "r2",
    "train.plateau": '{"factor":0.1,"patience":0,"min_lr":0.0} train.warmup_epochs=0 train.lr=3.0',
    "train.lr": "1e-2",
    "train.weight_decay": "0.5",
    "train.clip_norm": "1e-4",
    "train.seed": "1",
    "train.accumulate": "2",
    "train.patience": "1 train.lr=0.5 train.epochs=8",
    "train.precision": "64-true",
    "train.max_pairs": "100",
    "train.max_seconds": "1e-9",
}


def observe(recipe):
    """A run of the real loop on a small data set: everything that it tells, and the weights that it ends with."""
    store = small_store()
    if recipe.dataset != "zinc":  # the schema is what a data set brings; ZINC-full has seven more atom types
        manifest = store.manifest.model_copy(update={"graphs": DATASETS[recipe.dataset].schema})
        arrays = {name: store.array(name) for name in REQUIRED}
        store = GraphStore(manifest, arrays, [], None).with_splits(store.splits)
    events = []
    with tempfile.TemporaryDirectory() as folder:
        result = train(recipe, f"{folder}/run", store=store, watch=events.append, options=RunOptions(device="cpu"))
        history = [{**line, "seconds": 0} for line in RunFolder(f"{folder}/run").history()]
        weights = read_checkpoint(RunFolder(f"{folder}/run").last).under("model.")
    return {
        "weights": {name: value.tolist() for name, value in weights.items()},
        "result": {**result, "seconds": 0},
        "events": [(event.epoch, event.batch, event.batches, event.graphs, event.loss) for event in events],
        "history": history,
    }


BASE = (
    "model.num_layers=2",
    "model.hidden_dim=16",
    "model.attention_dropout=0.1",
    "encoding.walk_steps=4",
    "train.epochs=4",
    "train.warmup_epochs=1",
    "train.batch_size=16",
)


def test_every_leaf_is_perturbed():
    recipe = grit.load_recipe("zinc", *BASE)
    wanted = {path for path in leaves(recipe) if not path.startswith("paper.")}
    elsewhere = {"plugins", "train.balance"}  # test_plugins.py; test_fit_inputs.py, because a regression refuses it
    assert set(PERTURBATIONS) == wanted - elsewhere
    for path, change in PERTURBATIONS.items():
        assert str(leaves(recipe)[path]).lower() != change.split()[0]


@pytest.mark.parametrize("path", sorted(PERTURBATIONS))
def test_every_leaf_changes_something(path):
    """Some values imply another change, which is then made on both sides."""
    value, *implied = PERTURBATIONS[path].split()
    base = [each for each in BASE if path != "model.name" or "model." not in each]  # another model has other options
    before = observe(grit.load_recipe("zinc", *base, *implied))
    after = observe(grit.load_recipe("zinc", *base, *implied, f"{path}={value}"))
    assert before != after


def test_what_the_paper_reports_changes_nothing():
    changed = grit.load_recipe(
        "zinc", *BASE, "paper.mean=9.0", "paper.metric=none", "paper.sd=null", "paper.num_parameters=1"
    )
    assert observe(changed) == observe(grit.load_recipe("zinc", *BASE))


def test_an_unknown_key_of_a_part_of_a_part():
    with pytest.raises(
        grit.GritError, match=r"train\.plateau\.patients: unknown key \(did you mean 'patience'"
    ) as caught:
        grit.load_recipe("zinc", "train.plateau.patients=3")
    assert "Known here: factor, patience, min_lr." in str(caught.value)


def test_overrides():
    recipe = grit.load_recipe("zinc", "model.num_layers=4", "train.lr=3e-4", "model.clamp=null", "train.clip_norm=null")
    assert (recipe.model.num_layers, recipe.train.lr, recipe.model.clamp, recipe.train.clip_norm) == (
        4,
        3e-4,
        None,
        None,
    )
    assert recipe.model.hidden_dim == 64


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("zink", [], r"unknown recipe 'zink' \(did you mean 'zinc'\?\)"),
        ("zinc", ["model.num_layer=4"], r"model.num_layer: unknown key \(did you mean 'num_layers'\?\)"),
        ("zinc", ["modle.num_layers=4"], r"modle: unknown key \(did you mean 'model'\?\)"),
        ("zinc", ["model.num_layers=four"], "model.num_layers: got 'four': .*integer"),
        ("zinc", ["model.num_layers=true"], "model.num_layers: got True"),
        ("zinc", ["model.num_layers=0"], "model.num_layers: got 0: .*greater than or equal to 1"),
        ("zinc", ["model.dropout=1.5"], "model.dropout: got 1.5"),
        ("zinc", ["model.norm=group"], "model.norm: got 'group': there are batch, layer"),
        ("zinc", ["model.attention=gat"], "model.attention: got 'gat': there are grit, graphormer"),
        ("zinc", ["model.pairs=near"], "model.pairs: got 'near': pairs must be 'all'"),
        ("zinc", ["model.num_heads=7"], "model: hidden_dim 64 is not divisible by num_heads 7"),
        ("zinc", ["model.attention=graphormer"], "model: .*model.update_pairs=false"),
        ("zinc", ["encoding.name=lap"], "encoding.name: got 'lap': there are rrwp"),
        ("zinc", ["encoding.walk_steps=0"], "encoding.walk_steps: got 0"),
        ("zinc", ["dataset=zinc12"], "dataset: got 'zinc12': unknown data set"),
        ("zinc", ["paper.men=1"], r"paper.men: unknown key \(did you mean 'mean'\?\)"),
        ("zinc", ["train=5"], "train: got 5"),
        ("zinc", ["train.lr=.inf"], "train.lr: got inf"),
        ("zinc", ["train.seed=99999999999999999999"], "train.seed: got 99999999999999999999"),
        ("zinc", ["lr"], "override 'lr' is not of the form key=value"),
        ("zinc", ["train.lr=["], r"override 'train.lr=\[', line 1: not valid YAML"),
        ("zinc", ["epochs=3"], r"epochs: unknown key \(did you mean 'train.epochs'\?\)"),
        ("zinc", ["model.lr=3"], r"model.lr: unknown key \(did you mean 'train.lr'\?\)"),
        ("zinc", ["num_layer=3"], r"did you mean 'model.num_layers'\?"),
        ("zinc", ["name=gcn"], r"did you mean 'encoding.name' or 'model.name'\?"),
        ("zinc", ["metric=mae"], r"did you mean 'train.metric'\?"),
        ("zinc", ["factor=0.1"], r"did you mean 'train.plateau.factor'\?"),
        ("zinc", ["min_lrr=1"], r"did you mean 'train.plateau.min_lr'\?"),
        ("zinc", ["train.lr=abc"], "train.lr: got 'abc': expected a number"),
        ("zinc", ["train.lr="], "override 'train.lr=' has no value; write train.lr=null for none"),
        ("zinc", ["=3"], "override '=3' is not of the form key=value"),
        ("zinc", ["train..lr=3"], "override 'train..lr=3' is not of the form key=value"),
        ("zinc", ["a." * 3000 + "b=3"], r"override 'a.a.*\(6,005 characters\) is not of the form key=value"),
        ("zinc", ["train.lr.x=3"], "train.lr: got {'x': 3}: expected a number"),
        ("zinc", ["train.lr=[1]"], r"train.lr: got \[1\]: expected a number"),
        ("zinc", ["train.lr=2001-13-45"], "train.lr: got '2001-13-45': expected a number"),
        ("zinc", ["train.lr=1:30"], "train.lr: got '1:30': expected a number"),
        ("zinc", ["train.lr=1e400"], "train.lr: got inf: expected a number that is neither infinite nor nan"),
        ("zinc", ["train.lr=.nan"], "train.lr: got nan: expected a number that is neither infinite nor nan"),
        ("zinc", ["train.batch_size=-1"], "train.batch_size: got -1: .*greater than or equal to 1"),
        ("zinc", ["train.batch_size=99999999999999999999"], "train.batch_size: got 9.*less than or equal to 10000"),
        ("zinc", ["train.seed=" + "9" * 5000], "a number of 5,000 digits"),
        ("zinc", ["train.epochs=1e2"], "train.epochs: got 100.0: expected a whole number"),
        ("zinc", ["train.lr=" + "[" * 3000], "more than 20 levels"),
        ("zinc", ["train.lr=&a [*a]"], "aliases"),
        ("zinc", ["train={lr: 1, lr: 2}"], "the key 'lr' stands twice"),
        ("zinc", ["model.update_pairs=no"], "model.update_pairs: got 'no': expected true or false"),
        ("zinc", ["model.num_layers=1000000000"], "model.num_layers: got 1000000000: .*less than or equal to 10000"),
        ("zinc", ["model.num_layers=9999", "model.hidden_dim=80000"], "reduce num_layers or hidden_dim"),
        ("zinc", ["dataset=" + "a" * 300], "unknown data set 'aaa"),
        ("a\0.yaml", [], "cannot read the recipe"),
    ],
)
def test_bad_recipes(name, overrides, message):
    with pytest.raises(grit.GritError, match=message):
        grit.load_recipe(name, *overrides)


def test_bad_files(tmp_path):
    for content, message in [
        ("a: [", "line 1: not valid YAML"),
        ("- 1", "must be a mapping"),
        ("model: {}", "dataset: missing, and it has no default"),
        ("base: zonc", r"base: 'zonc' is not a recipe \(did you mean 'zinc'\?\)"),
    ]:
        (tmp_path / "mine.yaml").write_text(content)
        with pytest.raises(grit.GritError, match=message):
            grit.load_recipe(tmp_path / "mine.yaml")
    with pytest.raises(grit.GritError, match="cannot read the recipe 'absent.yaml': No such file"):
        grit.load_recipe("absent.yaml")


@pytest.mark.parametrize("name", ["a #1", "a: b", "[x", "*a", "no"])
def test_a_run_folder_of_any_name_is_recorded(name):
    """The folder of the data is text, whatever YAML would make of it."""
    recipe = preset_recipe("fast", small_store().schema, dataset=f"{name}/data")
    assert recipe.dataset == f"{name}/data"
    assert parse_yaml(recipe_yaml(recipe), "here")["dataset"] == f"{name}/data"


def test_own_file_on_top_of_a_recipe(tmp_path):
    (tmp_path / "mine.yaml").write_text("base: zinc\nmodel:\n  num_layers: 2\ntrain: {lr: 1e-4}\n")
    recipe = grit.load_recipe(str(tmp_path / "mine.yaml"), "model.num_heads=4")
    assert (recipe.model.num_layers, recipe.model.num_heads, recipe.train.lr) == (2, 4, 1e-4)
    assert recipe.train.epochs == 2000


def test_warm_up_in_proportion():
    original = load_recipe("zinc")
    said = []
    shorter = scale_warmup(load_recipe("zinc", "train.epochs=200"), original, ["train.epochs=200"], said.append)
    assert shorter.train.warmup_epochs == 5
    assert "warm-up of 5 epochs" in said[0]
    told = ["train.epochs=200", "train.warmup_epochs=9"]
    assert scale_warmup(load_recipe("zinc", *told), original, told, said.append).train.warmup_epochs == 9
    assert scale_warmup(original, original, [], said.append) == original
    assert len(said) == 1


@pytest.mark.parametrize(
    ("paper", "printed"),
    [
        ("{metric: mae, mean: 0.070, sd: 0.004}", "0.070 ± 0.004"),
        ("{metric: mae, mean: 0.081, sd: 0.010}", "0.081 ± 0.010"),
        ("{metric: accuracy, mean: 98.0, sd: 0.11}", "98.00 ± 0.11"),
        ("{metric: mae, mean: 0.0859, sd: null}", "0.0859"),
        ("{metric: null, mean: null, sd: null, num_parameters: 5}", None),
    ],
)
def test_the_papers_figure_as_printed(paper, printed):
    assert grit.load_recipe("zinc", f"paper={paper}").paper.printed == printed


@pytest.mark.parametrize("paper", ["{metric: mae, mean: null, sd: null}", "{metric: null, mean: null}"])
def test_half_a_figure_is_refused(paper):
    with pytest.raises(grit.GritError, match="metric and mean go together, and sd needs them"):
        grit.load_recipe("zinc", f"paper={paper}")


def takes_presets(kind):
    """Presets are GRIT's. Another model takes one if it reads the same batches."""
    return kind.encodings is None and kind.pairs is None and "node" in kind.levels


@pytest.mark.parametrize("name", [name for name, kind in grit.MODELS.items() if takes_presets(kind)])
def test_a_preset_for_nodes_sets_only_what_the_model_has(name):
    schema = small_store().schema.model_copy(update={"level": "node"})
    recipe = preset_recipe("fast", schema, f"model.name={name}")
    assert recipe.model.name == name
    if name == "grit":
        assert (recipe.model.pooling, recipe.model.head) == ("none", "mlp")
    statistics = {key: [0, 3, 5] for key in wanted_statistics(name)}
    assert build_model(recipe, schema, statistics=statistics) is not None


@pytest.mark.parametrize("name", recipes())
def test_every_recipe_says_what_it_is(name):
    assert len(recipe_title(name)) > 10


def test_a_file_stands_for_a_preset(tmp_path):
    schema = small_store().schema
    (tmp_path / "mine.yaml").write_text("base: own-fast\nmodel: {num_layers: 2}\n")
    recipe = preset_recipe(str(tmp_path / "mine.yaml"), schema, "train.lr=0.5", dataset="a/data")
    fast = preset_recipe("fast", schema)
    assert (recipe.model.num_layers, recipe.train.lr, recipe.dataset) == (2, 0.5, "a/data")
    assert recipe.model.hidden_dim == fast.model.hidden_dim
    with pytest.raises(grit.GritError, match=r"unknown preset 'mine'.*fast, default, paper.*ending .yaml"):
        preset_recipe("mine", schema)
    with pytest.raises(grit.GritError, match=r"cannot read the recipe .*gone.yaml"):
        preset_recipe(str(tmp_path / "gone.yaml"), schema)


def test_every_key_without_its_section_is_found():
    recipe = grit.load_recipe("zinc").model_dump()
    for section in ("encoding", "model", "train"):
        for key in recipe[section]:
            with pytest.raises(grit.GritError, match=rf"^[^?]*did you mean [^?]*'{section}\.{key}'"):
                grit.load_recipe("zinc", f"{key}=1")
