"""Entries from outside: how plugins are found, what goes wrong with them, and what older recipes become."""

import json
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
import torch

import grit
from grit.batches.loader import Loader
from grit.recipe.builder import build_optimizer
from grit.recipe.load import load_saved_recipe, recipe_yaml
from grit.recipe.plugins import load_installed_plugins
from grit.training.train import RunOptions, train
from tests.training.small import SMALL, small_recipe, small_store

CPU = RunOptions(device="cpu")
pytestmark = pytest.mark.usefixtures("forget_plugins")

ENCODING = """
import torch
import grit
from grit.encodings import Encoding, EncodingKind

def compute(graphs, pairs, walk_steps, dtype):
    return Encoding(torch.ones(graphs.num_nodes, 1, dtype=dtype), torch.zeros(pairs.num_pairs, 0, dtype=dtype))

def one(walk_steps):
    return 1

def nothing(walk_steps):
    return 0

grit.ENCODINGS["{name}"] = EncodingKind(compute, node_dim=one, pair_dim=nothing)
"""


def write(path, text=ENCODING, name="ones"):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(text.replace("{name}", name))
    return path


class TestLoading:
    def test_a_file_is_imported_once(self, tmp_path):
        file = write(tmp_path / "mine.py", "import os\nos.mkdir(__file__ + '.ran')\n")
        for _ in range(2):
            grit.load_plugin(str(file))
        assert (tmp_path / "mine.py.ran").is_dir()  # a second one would fail

    def test_a_module_is_found_by_its_name(self, tmp_path, monkeypatch):
        write(tmp_path / "mine_by_name.py")
        monkeypatch.syspath_prepend(tmp_path)
        grit.load_plugin("mine_by_name")
        assert grit.load_recipe("zinc", "encoding.name=ones").encoding.name == "ones"

    def test_installed_plugins(self, tmp_path, monkeypatch):
        write(tmp_path / "mine_installed.py")
        monkeypatch.syspath_prepend(tmp_path)
        point = EntryPoint(name="mine", value="mine_installed", group="grit.plugins")
        monkeypatch.setattr("grit.recipe.plugins.entry_points", lambda group: [point] if group == point.group else [])
        load_installed_plugins()
        assert "ones" in grit.ENCODINGS

    def test_a_run_records_installed_plugins_and_is_read_with_them(self, tmp_path, monkeypatch):
        """Python code that opens the run need not load them first, as the command line does not."""
        write(tmp_path / "mine_recorded.py", name="recorded")
        monkeypatch.syspath_prepend(tmp_path)
        point = EntryPoint(name="mine", value="mine_recorded", group="grit.plugins")
        monkeypatch.setattr("grit.recipe.plugins.entry_points", lambda group: [point] if group == point.group else [])
        load_installed_plugins()
        recipe = small_recipe("encoding.name=recorded", "train.epochs=1")
        train(recipe, tmp_path / "run", store=small_store(), options=CPU)
        assert json.loads((tmp_path / "run" / "environment.json").read_text())["plugins"] == ["mine_recorded"]
        del grit.ENCODINGS["recorded"], sys.modules["mine_recorded"]
        assert grit.load(tmp_path / "run").recipe == recipe

    def test_two_files_of_one_name(self, tmp_path):
        for folder in ("one", "other"):
            grit.load_plugin(str(write(tmp_path / folder / "mine.py", name=folder)))
        assert {"one", "other"} <= grit.ENCODINGS.keys()

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("absent_module", r"there is no module 'absent_module' to load as a plugin.*\./absent_module\.py"),
            ("grit.absent", "there is no module 'grit.absent'"),
            ("absent.py", r"there is no plugin '.*absent\.py'"),
            ("", "the plugin '' fails"),
            (".relative", "the plugin '.relative' fails"),
        ],
    )
    def test_what_is_not_there(self, name, message):
        with pytest.raises(grit.GritError, match=message):
            grit.load_plugin(name)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("1 / 0", r"line 1: ZeroDivisionError: division by zero"),
            ("\nraise RuntimeError('no luck')", r"line 2: RuntimeError: no luck"),
            ("assert False, 'never'", "line 1: AssertionError: never"),
            ("open('/absent/file')", "line 1: FileNotFoundError"),
            ("x = (", "line 1: SyntaxError"),
            ("import absent_package", "ModuleNotFoundError: No module named 'absent_package'"),
            (
                "import grit\ngrit.ENCODING['x'] = 1",
                "line 2: AttributeError: module 'grit' has no attribute 'ENCODING'",
            ),
        ],
    )
    def test_a_plugin_that_fails_is_named_with_its_line(self, tmp_path, text, message):
        file = write(tmp_path / "broken.py", text)
        with pytest.raises(grit.GritError, match=rf"the plugin '.*broken\.py' fails when it is imported.*{message}"):
            grit.load_plugin(str(file))
        assert not [name for name in sys.modules if name.startswith("grit_plugin_broken")]

    def test_a_failing_plugin_leaves_nothing_behind(self, tmp_path):
        file = write(tmp_path / "half.py", ENCODING + "raise RuntimeError('later')\n", name="half")
        with pytest.raises(grit.GritError, match="RuntimeError: later"):
            grit.load_plugin(str(file))
        assert "half" not in grit.ENCODINGS

    def test_a_missing_import_of_a_module_is_not_taken_for_the_module(self, tmp_path, monkeypatch):
        """The missing name may be the beginning of the plugin's own."""
        write(tmp_path / "abcdef_plugin.py", "import abcdef")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(grit.GritError, match="'abcdef_plugin' fails when it is imported.*No module named 'abcdef'"):
            grit.load_plugin("abcdef_plugin")

    @pytest.mark.parametrize("known", [True, False])
    def test_a_logger_that_exists_is_not_replaced(self, tmp_path, known):
        """Also if the plugin is the first to ask for the table."""
        text = "import grit\ngrit.LOGGERS['csv'] = grit.LOGGERS['mine'] = list\n"
        file = tmp_path / "thief.py"
        file.write_text(text)
        code = f"import grit\n{'grit.LOGGERS' if known else ''}\ntry:\n  grit.load_plugin({str(file)!r})\n"
        code += "except grit.GritError as error:\n  print(error, list(grit.LOGGERS))\n"
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert "replaces 'csv' of LOGGERS" in said
        assert "['csv', 'tensorboard', 'wandb']" in said

    def test_an_entry_that_exists_is_not_replaced(self, tmp_path):
        """Otherwise a run could mean one thing with a plugin and another without, and nobody would be told."""
        before = grit.ENCODINGS["rrwp"]
        file = write(tmp_path / "thief.py", name="rrwp")
        with pytest.raises(grit.GritError, match=r"thief\.py' replaces 'rrwp' of ENCODINGS.*another name"):
            grit.load_plugin(str(file))
        assert grit.ENCODINGS["rrwp"] is before


class TestRecipes:
    def test_files_begin_at_the_folder_of_the_recipe_that_names_them(self, tmp_path, monkeypatch):
        write(tmp_path / "deep" / "mine.py", name="deep")
        (tmp_path / "deep" / "mine.yaml").write_text("base: zinc\nplugins: [mine.py]\nencoding: {name: deep}\n")
        monkeypatch.chdir(tmp_path)
        recipe = grit.load_recipe("deep/mine.yaml")
        assert recipe.encoding.name == "deep"
        assert recipe.plugins == (str(tmp_path / "deep" / "mine.py"),)

    def test_plugins_of_a_base_an_overlay_and_an_override_add_up(self, tmp_path):
        files = [write(tmp_path / f"{name}.py", name=name) for name in ("below", "above", "beside")]
        (tmp_path / "mine.yaml").write_text("base: zinc\nplugins: [below.py]\nencoding: {name: below}\n")
        (tmp_path / "top.yaml").write_text("base: mine.yaml\nplugins: [above.py]\n")
        recipe = grit.load_recipe(tmp_path / "top.yaml", f"plugins=['{files[2]}', '{files[0]}']")
        assert recipe.plugins == tuple(map(str, files))
        assert recipe.encoding.name == "below"
        assert {"below", "above", "beside"} <= grit.ENCODINGS.keys()

    @pytest.mark.parametrize("value", ["mine.py", "3", "[3]", "[[a]]", "{a: b}", "['']"])
    def test_plugins_that_are_no_list_of_names(self, value):
        with pytest.raises(grit.GritError, match="plugins must be a list of modules or files, got"):
            grit.load_recipe("zinc", f"plugins={value}")


MARKED = ENCODING + "\nimport pathlib\npathlib.Path(__file__).with_suffix('.ran').touch()\n"


class TestRunFolders:
    @pytest.fixture
    def run(self, tmp_path, forget_plugins):
        """A run that was trained with a plugin, in a process that has not loaded it."""
        file = write(tmp_path / "mine.py", MARKED)
        recipe = small_recipe(f"plugins=['{file}']", "encoding.name=ones", "train.epochs=1")
        train(recipe, tmp_path / "run", store=small_store(), options=CPU)
        forget_plugins()
        file.with_suffix(".ran").unlink()
        return tmp_path / "run"

    def test_the_file_of_a_run_is_not_executed_unless_it_is_named_again(self, run):
        with pytest.raises(
            grit.GritError, match=r"(?s)got 'ones'.*trained with .*mine\.py\. If you trust it.*--plugin"
        ):
            grit.load(run)
        assert not run.with_name("mine.ran").exists()

    def test_named_again_it_predicts_also_from_another_place(self, run, tmp_path):
        grit.load_plugin(str(write(tmp_path / "moved" / "mine.py")))
        assert grit.load(run).evaluate(small_store()).keys() >= {"mae"}

    def test_a_run_goes_on_with_a_plugin_that_has_moved(self, run, tmp_path):
        moved = write(tmp_path / "moved" / "mine.py")
        grit.load_plugin(str(moved))
        recipe = load_saved_recipe(run / "config.yaml", f"plugins=['{moved}']")
        assert "test" in train(recipe, run, store=small_store(), resume=True, options=CPU)

    def test_modules_that_are_installed_are_loaded(self, tmp_path, monkeypatch):
        write(tmp_path / "site" / "mine_of_a_run.py", name="installed")
        monkeypatch.syspath_prepend(tmp_path / "site")
        recipe = small_recipe("plugins=[mine_of_a_run]", "encoding.name=installed", "train.epochs=1")
        train(recipe, tmp_path / "run", store=small_store(), options=CPU)
        assert grit.load(tmp_path / "run").recipe.plugins == ("mine_of_a_run",)


def test_worker_processes_see_the_plugin(tmp_path):
    grit.load_plugin(str(write(tmp_path / "mine.py")))
    store = small_store()
    loader = Loader(store, store.split("val"), grit.BatchSpec(encoding="ones"), batch_size=5, num_workers=1)
    batches = list(loader.epoch())
    assert [batch.num_graphs for batch in batches] == [5, 5]
    assert all(torch.equal(batch.node_encoding, torch.ones(batch.num_nodes, 1)) for batch in batches)


class TestVersion01:
    """Recipes and run folders with the key ``baseline``."""

    def test_a_recipe(self, tmp_path):
        (tmp_path / "mine.yaml").write_text("base: zinc\nbaseline: gps\n")
        recipe = grit.load_recipe(tmp_path / "mine.yaml")
        assert recipe.model.name == "gps"
        assert recipe == grit.load_recipe("zinc", "model.name=gps")

    def test_a_recipe_of_grit(self, tmp_path):
        (tmp_path / "mine.yaml").write_text("base: zinc\nbaseline: null\n")
        assert grit.load_recipe(tmp_path / "mine.yaml") == grit.load_recipe("zinc")

    def test_overrides_take_effect(self):
        recipe = grit.load_recipe("zinc", "baseline=gps", "model.hidden_dim=32")
        assert (recipe.model.name, recipe.model.hidden_dim) == ("gps", 32)
        assert recipe == grit.load_recipe("zinc", "model.name=gps", "model.hidden_dim=32")

    def test_an_unknown_one_is_named(self):
        with pytest.raises(grit.GritError, match="model.name: got 'gpx': there are grit, .*gine, .*gps"):
            grit.load_recipe("zinc", "baseline=gpx")

    @pytest.mark.parametrize("pairs", ["all", "edges"])
    def test_a_run_folder(self, tmp_path, pairs):
        """It lists all options of GRIT, which its baseline ignored."""
        recipe = grit.load_recipe("zinc", "model.name=gine", f"model.pairs={pairs}", *SMALL_TRAIN)
        train(recipe, tmp_path / "run", store=small_store(), options=CPU)
        wanted = grit.load(tmp_path / "run").evaluate(small_store())
        config = tmp_path / "run" / "config.yaml"
        config.write_text(OLD_MODEL.format(pairs=pairs) + "\n" + without_section(recipe_yaml(recipe), "model"))
        loaded = grit.load(tmp_path / "run")
        assert (loaded.recipe.model.name, loaded.recipe.model.pairs) == ("gine", pairs)
        assert loaded.evaluate(small_store()) == wanted


SMALL_TRAIN = [each for each in SMALL if not each.startswith("model.")] + ["train.epochs=1"]
OLD_MODEL = """baseline: gine
model:
  num_layers: 10
  hidden_dim: 64
  num_heads: 8
  dropout: 0.0
  attention_dropout: 0.2
  attention: grit
  pairs: {pairs}
  degree: scaler
  update_pairs: true
  norm: batch
  clamp: 5.0
  activation: relu
  pooling: sum
  head: halving
  head_layers: 3"""


def without_section(text, name):
    lines, kept, skipping = text.splitlines(), [], False
    for line in lines:
        skipping = line.startswith(f"{name}:") or (skipping and line.startswith(" "))
        kept += [] if skipping else [line]
    return "\n".join(kept) + "\n"


class TestOptions:
    def test_an_option_of_another_model_is_refused_by_name(self):
        with pytest.raises(grit.GritError, match=r"model.num_heads: unknown key.*Known here: name, pairs, num_layers"):
            grit.load_recipe("zinc", "model.name=gine", "model.num_heads=4")

    @pytest.mark.parametrize(
        ("signature", "message"),
        [
            ("schema, **options", r"takes \*\*options"),
            ("schema, *more", r"takes \*more"),
            ("schema, pairs='all'", "'pairs'.*means something else"),
            ("schema, name='x'", "'name'.*means something else"),
            ("schema, width: 'Absent' = 3", "'Absent' is not defined"),
        ],
    )
    def test_a_model_whose_options_cannot_be_told(self, tmp_path, signature, message):
        text = f"import grit\nfrom grit.models import ModelKind\ndef make({signature}): pass\n"
        file = write(tmp_path / "mine.py", text + "grit.MODELS['odd'] = ModelKind(make)\n")
        with pytest.raises(grit.GritError, match=f"the model 'odd'.*{message}"):
            grit.load_recipe("zinc", f"plugins=['{file}']", "model.name=odd")

    def test_a_loss_of_another_kind_of_task(self, tmp_path):
        recipe = small_recipe("train.loss=cross_entropy")
        with pytest.raises(
            grit.GritError, match="regression is trained with the loss l1 or mse.*, not with cross_entr"
        ):
            train(recipe, tmp_path / "run", store=small_store(), options=CPU)
        assert not (tmp_path / "run").exists()

    def test_a_metric_of_another_kind_of_task(self, tmp_path):
        with pytest.raises(grit.GritError, match="regression is measured by mae, rmse, r2.*, not by auroc"):
            train(small_recipe("train.metric=auroc"), tmp_path / "run", store=small_store(), options=CPU)

    def test_loss_and_metric_are_those_of_the_run(self, tmp_path):
        result = train(
            small_recipe("train.loss=mse", "train.metric=r2", "train.epochs=1"),
            tmp_path / "run",
            store=small_store(),
            options=CPU,
        )
        assert result["metric"] == "r2"
        assert grit.load(tmp_path / "run").task.spec.loss == "mse"

    @pytest.mark.parametrize("name", sorted(grit.OPTIMIZERS))
    def test_every_optimizer_lowers_a_loss(self, name):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 1)
        optimizer = build_optimizer(
            model, small_recipe(f"train.optimizer={name}", "train.lr=1e-2", "train.warmup_epochs=0").train
        )
        x = torch.randn(20, 3)
        losses = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0]

    def test_an_optimizer_of_ones_own(self, tmp_path):
        text = "import grit, torch\ngrit.OPTIMIZERS['{name}'] = lambda p, lr, wd: torch.optim.RMSprop(p, lr, weight_decay=wd)\n"
        file = write(tmp_path / "mine.py", text, name="rms")
        recipe = small_recipe(f"plugins=['{file}']", "train.optimizer=rms", "train.epochs=2")
        whole = train(recipe, tmp_path / "run", store=small_store(), options=CPU)
        assert whole["epochs"] == 2
        with pytest.raises(grit.GritError, match="train.optimizer: got 'rmz': there are adamw, adam, sgd, rms"):
            small_recipe("train.optimizer=rmz")
