import gzip
import importlib.util
import math
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from grit.datasets.benchmarks.superpixels import CIFAR10, MNIST, knn_edges, superpixel_graph
from grit.errors import GritError

DATA = Path(__file__).parents[4] / "shared" / "data"
needs_skimage = pytest.mark.skipif(importlib.util.find_spec("skimage") is None, reason="scikit-image is not installed")


def slow_weight(points):
    """A of the benchmark, one entry at a time."""
    n = len(points)
    distance = [[math.dist(p, q) for q in points] for p in points]
    sigma = [sum(sorted(row)[:9]) / 8 + 1e-8 if n >= 9 else 1 + 1e-8 for row in distance]
    one_way = [[math.exp(-((distance[i][j] / sigma[i]) ** 2)) for j in range(n)] for i in range(n)]
    return [[0.0 if i == j else (one_way[i][j] + one_way[j][i]) / 2 for j in range(n)] for i in range(n)]


def slow_targets(weight, i):
    nine = sorted(sorted((j for j in range(len(weight)) if j != i), key=lambda j: -weight[i][j])[:9])
    nine.remove(max(nine[-2:], key=lambda j: weight[i][j]))
    return nine


def targets_by_source(edge_index, num_nodes):
    return [edge_index[1, edge_index[0] == i].tolist() for i in range(num_nodes)]


def test_ten_points_on_a_line_by_hand():
    edge_index, weight = knn_edges(np.array([[0.0, i] for i in range(10)]))
    # sigma is 4.5, 3.625, 3, 2.625, 2.5 from either end to the middle. All nine others are the nine largest; of the two
    # of highest number, 8 and 9 for most, the one of larger weight is left out. That is 9 for nodes 1 and 2, although it
    # is farther than 8, because sigma is larger at the end of the line: for node 1
    # (exp(-(8/3.625)^2) + exp(-(8/4.5)^2)) / 2 = 0.0251 > exp(-(7/3.625)^2) = 0.0240.
    left_out = [8, 9, 9, 8, 8, 8, 8, 8, 9, 8]
    wanted = [[j for j in range(10) if j not in (i, left_out[i])] for i in range(10)]
    assert targets_by_source(edge_index, 10) == wanted
    of = dict(zip(zip(*edge_index.tolist(), strict=True), weight.tolist(), strict=True))
    assert of[0, 9] == pytest.approx(math.exp(-4), rel=1e-6)  # 9 apart, sigma 36 / 8 at both
    assert of[0, 1] == of[1, 0] == pytest.approx((math.exp(-1 / 4.5**2) + math.exp(-1 / 3.625**2)) / 2, rel=1e-6)


@pytest.mark.parametrize("num_nodes", [10, 11, 40, 75])
def test_edges_and_weights_are_those_of_a_slow_loop(num_nodes):
    points = np.random.default_rng(num_nodes).random((num_nodes, 2))
    edge_index, weight = knn_edges(points)
    slow = slow_weight(points.tolist())
    assert targets_by_source(edge_index, num_nodes) == [slow_targets(slow, i) for i in range(num_nodes)]
    np.testing.assert_allclose(weight, np.array(slow)[edge_index[0], edge_index[1]], rtol=1e-9)


def test_which_neighbour_is_left_out_has_the_frequencies_of_the_official_code():
    counts = np.zeros(9)
    for seed in range(40):
        points = np.random.default_rng(seed).random((75, 2))
        edge_index, _ = knn_edges(points)
        order = np.argsort(-np.array(slow_weight(points.tolist())), axis=1)[:, :9]
        kept = edge_index[1].reshape(75, 8)
        counts += (order[:, :, None] != kept[:, None]).all(axis=2).sum(axis=0)
    # What np.argpartition left out without vector instructions, on 300 MNIST images.
    official = np.array([0.237, 0.198, 0.163, 0.132, 0.102, 0.072, 0.054, 0.030, 0.013])
    np.testing.assert_allclose(counts / counts.sum(), official, atol=0.03)


# Few distinct values, so that nodes coincide and distances tie.
coordinates = st.one_of(
    npst.arrays(np.float32, st.tuples(st.integers(1, 30), st.just(2)), elements=st.floats(0, 1, width=32)),
    npst.arrays(np.float32, st.tuples(st.integers(1, 30), st.just(2)), elements=st.sampled_from([0.0, 0.25, 1.0])),
)


@given(coordinates)
def test_any_coordinates(points):
    num_nodes = len(points)
    edge_index, weight = knn_edges(points)
    slow = np.array(slow_weight(points.tolist()))
    np.testing.assert_allclose(weight, slow[edge_index[0], edge_index[1]], rtol=1e-6, atol=1e-12)
    neighbours = targets_by_source(edge_index, num_nodes)
    for i, targets in enumerate(neighbours):
        others = [j for j in range(num_nodes) if j != i]
        if num_nodes <= 9:
            assert targets == others
        else:
            assert len(targets) == len(set(targets)) == 8
            assert i not in targets
            ninth_largest = sorted((slow[i, j] for j in others), reverse=True)[8]
            assert min(slow[i, j] for j in targets) >= ninth_largest - 1e-9


def test_a_node_is_not_its_own_neighbour_where_all_weights_vanish():
    # 8 neighbours in the same place and the other 9 nodes at weight 0, like the diagonal.
    edge_index, _ = knn_edges(np.repeat([[0.0, 0.0], [1.0, 1.0]], 9, axis=0))
    assert edge_index.shape == (2, 8 * 18)
    assert (edge_index[0] != edge_index[1]).all()


def test_few_nodes_weigh_with_sigma_one():
    edge_index, weight = knn_edges(np.array([[0.0, 0.0], [0.3, 0.4]]))
    assert edge_index.tolist() == [[0, 1], [1, 0]]
    assert weight == pytest.approx(math.exp(-0.25))


@pytest.mark.parametrize("num_nodes", [1, 8, 9])
def test_weights_of_few_nodes_are_those_of_a_slow_loop(num_nodes):
    points = np.random.default_rng(num_nodes).random((num_nodes, 2))
    edge_index, weight = knn_edges(points)
    assert edge_index.shape == (2, num_nodes * (num_nodes - 1))
    np.testing.assert_allclose(weight, np.array(slow_weight(points.tolist()))[edge_index[0], edge_index[1]], rtol=1e-9)


def picture(side, channels):
    """Coloured discs on a noisy ground."""
    rng = np.random.default_rng(3)
    rows, columns = np.indices((side, side))
    image = rng.integers(0, 60, size=(side, side, channels))
    for _ in range(5):
        row, column = rng.integers(side, size=2)
        image[(rows - row) ** 2 + (columns - column) ** 2 < 30] = rng.integers(60, 256, size=channels)
    return image.astype(np.uint8).squeeze()


def graph_of(image, settings, *, seed=0, label=7, **changes):
    return superpixel_graph(image, label=label, rng=np.random.default_rng(seed), **(asdict(settings) | changes))


def in_row_order(x):
    return x[np.lexsort(x.T[::-1])]


CASES = pytest.mark.parametrize(("side", "channels", "settings"), [(28, 1, MNIST), (32, 3, CIFAR10)])


@needs_skimage
@CASES
def test_nodes_are_the_first_segments_that_fit(side, channels, settings):
    from skimage.segmentation import slic

    image = picture(side, channels)
    num_segments = settings.first_segments + 1
    labels = np.arange(settings.max_superpixels + 1)
    while len(np.unique(labels)) > settings.max_superpixels:
        num_segments -= 1
        labels = slic(
            image / 255,
            n_segments=num_segments,
            compactness=settings.compactness,
            channel_axis=None if channels == 1 else -1,
            start_label=0,
        )
    assert num_segments < settings.first_segments  # else the picture says nothing of the search
    masks = [labels == number for number in np.unique(labels)]
    wanted = [
        [*np.atleast_1d(image[mask].mean(axis=0) / 255), *(np.argwhere(mask).mean(axis=0) / side)] for mask in masks
    ]
    x = graph_of(image, settings).x
    assert x.shape == (len(masks), channels + 2)
    np.testing.assert_allclose(in_row_order(x), in_row_order(np.array(wanted, dtype=np.float32)), rtol=1e-6)


@needs_skimage
@CASES
def test_a_graph_has_eight_edges_per_node_and_its_label(side, channels, settings):
    graph = graph_of(picture(side, channels), settings, label=4)
    edge_index, weight = knn_edges(graph.x[:, -2:])
    assert np.bincount(graph.edge_index[0]).tolist() == [8] * len(graph.x)
    np.testing.assert_array_equal(graph.edge_index, edge_index)
    np.testing.assert_array_equal(graph.edge_attr, weight.astype(np.float32)[:, None])
    assert graph.y.tolist() == [[4]]
    dtypes = (graph.x.dtype, graph.edge_index.dtype, graph.edge_attr.dtype, graph.y.dtype)
    assert dtypes == (np.float32, np.int64, np.float32, np.int64)


@needs_skimage
def test_few_superpixels_are_fully_connected():
    graph = graph_of(picture(28, 1), MNIST, max_superpixels=9, first_segments=9)
    n = len(graph.x)
    assert 1 < n <= 9
    assert sorted(zip(*graph.edge_index.tolist(), strict=True)) == [
        (i, j) for i in range(n) for j in range(n) if i != j
    ]


@needs_skimage
def test_an_image_of_one_colour():
    graph = graph_of(np.full((28, 28), 51, dtype=np.uint8), MNIST)
    assert len(graph.x) > 9
    np.testing.assert_allclose(graph.x[:, 0], 0.2, rtol=1e-6)


@needs_skimage
def test_rng_decides_the_order_of_nodes_and_nothing_else():
    image = picture(32, 3)
    first, same, other = (graph_of(image, CIFAR10, seed=seed) for seed in (1, 1, 2))
    for a, b in zip(first, same, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first.x, other.x)
    np.testing.assert_array_equal(in_row_order(first.x), in_row_order(other.x))


@needs_skimage
def test_a_limit_that_cannot_be_met():
    with pytest.raises(GritError, match="at most 0 superpixels"):
        graph_of(picture(28, 1), MNIST, max_superpixels=0)


@pytest.mark.parametrize(
    "image", [np.zeros((28, 28)), np.zeros((28, 20), np.uint8), np.zeros((28, 28, 4), np.uint8), np.zeros(28, np.uint8)]
)
def test_not_an_image(image):
    with pytest.raises(GritError, match=r"uint8 of shape \(S, S\) or \(S, S, 3\)"):
        graph_of(image, MNIST)


def test_missing_scikit_image(monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage.segmentation", None)
    with pytest.raises(GritError, match=r"pip install 'torch-grit\[image\]'"):
        graph_of(picture(28, 1), MNIST)


@needs_skimage
@pytest.mark.skipif(not (DATA / "mnist").exists(), reason="no MNIST here")
def test_mnist_node_counts():
    with gzip.open(DATA / "mnist" / "train-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(16 + 30 * 28 * 28), np.uint8, offset=16).reshape(30, 28, 28)
    sizes = np.array([len(graph_of(image, MNIST).x) for image in images])
    assert sizes.max() <= 75
    # Published: 70.57. scikit-image 0.26 goes down to the next coarser grid on 17 % of the first 300 images (45.1 nodes
    # on average, the others 72.1, all 67.5); 0.14 does not.
    usual = sizes[sizes > 55]
    assert len(usual) > 20
    assert usual.mean() == pytest.approx(70.57, rel=0.04)


@needs_skimage
@pytest.mark.skipif(not (DATA / "cifar10").exists(), reason="no CIFAR10 here")
def test_cifar10_node_counts():
    with np.load(DATA / "cifar10" / "cifar10_subset.npz") as file:
        images = file["x_train"][:20]
    sizes = np.array([len(graph_of(image, CIFAR10).x) for image in images])
    assert sizes.max() <= 150
    # Published: 117.63. scikit-image 0.26 measured 108.7 on the first 100 images.
    assert 103 < sizes.mean() < 121
