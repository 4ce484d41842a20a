import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import grit
from tests.training.small import small_graphs

TINY = (
    "encoding.walk_steps=4",
    "model.num_layers=1",
    "model.hidden_dim=16",
    "model.num_heads=2",
    "model.pooling=sum",
    "model.attention_dropout=0.0",
    "train.batch_size=8",
    "train.lr=1e-2",
)
SMILES = ["C" * (k % 8 + 1) + ("O" if k % 2 else "N") for k in range(48)]
CARBONS = np.array([each.count("C") for each in SMILES], dtype=float)
OXYGEN = np.array(["oxygen" if "O" in each else "nitrogen" for each in SMILES])


def test_regression_of_smiles():
    model = grit.GritRegressor(epochs=25, overrides=TINY, seed=1)
    assert model.fit(SMILES, CARBONS) is model
    predicted = model.predict(SMILES)
    assert predicted.shape == CARBONS.shape
    assert np.abs(predicted - CARBONS).mean() < 0.6 * np.abs(CARBONS - CARBONS.mean()).mean()
    assert model.score(SMILES, CARBONS) > 0.3


def test_several_targets_and_missing_ones():
    y = np.stack([CARBONS, -CARBONS], 1)
    y[::4, 1] = np.nan
    model = grit.GritRegressor(epochs=1, overrides=TINY).fit(SMILES, y)
    assert model.predict(SMILES[:5]).shape == (5, 2)


def test_classification_with_names():
    model = grit.GritClassifier(epochs=40, overrides=TINY).fit(SMILES, OXYGEN)
    assert model.classes_.tolist() == ["nitrogen", "oxygen"]
    chances = model.predict_proba(SMILES)
    assert model.predict(SMILES).tolist() == model.classes_[chances.argmax(1)].tolist()
    assert roc_auc_score(OXYGEN == "oxygen", chances[:, 1]) > 0.9
    assert chances.shape == (48, 2)
    np.testing.assert_allclose(chances.sum(1), 1, atol=1e-6)


def test_three_classes_of_graphs():
    graphs = small_graphs(count=40)[1:]
    y = np.array([graph.num_nodes % 3 for graph in graphs])
    model = grit.GritClassifier(epochs=1, overrides=TINY).fit(graphs, y)
    assert model.predict_proba(graphs).shape == (39, 3)
    assert model.predict(graphs).tolist() == model.predict_proba(graphs).argmax(1).tolist()
    assert "y" in graphs[0]
    assert graphs[0].y.dtype.is_floating_point  # the user's graphs are left as they were


@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("labels", [(1, 2), (7, 3), ("b", "a")])
def test_any_two_labels(labels, graphs):
    """Labels stand for classes, whatever they are: the same model for (0, 1), (1, 2) and (7, 3)."""
    items = small_graphs(count=40)[1:] if graphs else SMILES
    first = np.array([k % 3 == 0 for k in range(len(items))])
    model = grit.GritClassifier(epochs=2, overrides=TINY).fit(items, np.where(first, *sorted(labels)))
    plain = grit.GritClassifier(epochs=2, overrides=TINY).fit(items, np.where(first, 0, 1))
    assert model.classes_.tolist() == sorted(labels)
    np.testing.assert_array_equal(model.predict_proba(items), plain.predict_proba(items))
    assert model.predict(items).tolist() == [sorted(labels)[number] for number in plain.predict(items)]


def test_graphs_regression():
    graphs = small_graphs(count=30)[1:]
    model = grit.GritRegressor(epochs=1, overrides=TINY).fit(graphs, np.arange(29.0))
    assert model.predict(graphs[:4]).shape == (4,)


def test_numbers_that_look_like_classes_stay_numbers_in_a_regression():
    fitted = grit.GritRegressor(epochs=1, overrides=TINY).fit(small_graphs(count=12), [float(k % 2) for k in range(12)])
    assert fitted.predictor_.task.spec.kind == "regression"


def test_identical_molecules_are_merged_and_salts_are_their_parents():
    """Three of each molecule, one as its salt: 16 molecules are left."""
    acids = [f"{'C' * carbons}C(=O)O" for carbons in range(1, 17)]
    salts = [f"{each[:-1]}[O-].[Na+]" for each in acids]
    y = np.arange(48) / 7
    model = grit.GritRegressor(epochs=1, overrides=TINY, standardise="parent", duplicates="merge")
    model.fit([*acids, *acids, *salts], y)
    acid, salt = model.predict([acids[3], salts[3]])
    assert acid == salt
    with pytest.raises(grit.GritError, match="16 molecules occur more than once, in 48 rows"):
        clone(model).set_params(duplicates="error").fit([*acids, *acids, *salts], y)


def test_scikit_learns_manners():
    model = grit.GritRegressor(epochs=1, overrides=TINY, seed=3)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.set_params(epochs=2).epochs == 2
    with pytest.raises(NotFittedError):
        model.predict(SMILES)
    scores = cross_val_score(model, np.array(SMILES, dtype=object), CARBONS, cv=2)
    assert scores.shape == (2,)
    pipeline = make_pipeline(FunctionTransformer(lambda x: [each.strip() for each in x]), model)
    assert pipeline.fit([f" {each} " for each in SMILES], CARBONS).predict(SMILES[:3]).shape == (3,)


def test_the_same_seed_gives_the_same_predictions():
    first, second, other = (
        grit.GritRegressor(epochs=1, overrides=TINY, seed=seed).fit(SMILES, CARBONS) for seed in (5, 5, 6)
    )
    assert np.array_equal(first.predict(SMILES), second.predict(SMILES))
    # The seed decides the weights and the validation part.
    assert not np.allclose(first.predict(SMILES), other.predict(SMILES))
    assert other.predictor_.recipe.train.seed == 6
    parts = [each.predictor_.data.split_checksums["val"] for each in (first, second, other)]
    assert parts[0] == parts[1] != parts[2]


@pytest.mark.parametrize(
    ("make", "x", "y", "message"),
    [
        (
            grit.GritRegressor,
            ["CC", "xx(", "CO", "CN"],
            [1.0, 2.0, 3.0, 4.5],
            r"X\[1\] is 'xx\(', which cannot be used: not valid SMILES",
        ),
        (
            grit.GritRegressor,
            ["CC", "CF", None, "CO", "CN"],
            [1.0, 2.0, 3.0, 4.5, 5.0],
            r"X\[2\] is 'None', which cannot be used: not text but NoneType",
        ),
        (
            grit.GritRegressor,
            SMILES,
            np.where(np.arange(len(SMILES)) == 3, np.inf, CARBONS),
            rf"X\[3\] is '{SMILES[3]}', which cannot be used: y is 'inf', expected a number",
        ),
        (grit.GritRegressor, [*small_graphs(3), None], [1.0, 2.0, 3.0, 4.0], r"X\[3\] is not a graph but NoneType"),
        (grit.GritRegressor, ["CC"], [1.0, 2.0], "X has 1 entries and y has 2"),
        (grit.GritClassifier, ["CC", "CO", "CN"], ["a", "a", "a"], "only the class"),
        (
            lambda: grit.GritRegressor(preset="huge"),
            SMILES,
            CARBONS,
            "unknown preset 'huge'; there are fast, default, paper",
        ),
    ],
)
def test_mistakes(make, x, y, message):
    with pytest.raises(grit.GritError, match=message):
        make().fit(x, y)
