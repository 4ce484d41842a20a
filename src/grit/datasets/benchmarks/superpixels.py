"""Images as graphs of superpixels: MNIST and CIFAR10 of the GNN benchmark (Dwivedi et al., 2020).

An image is cut into superpixels by SLIC; a superpixel is a node, and nodes are joined to near ones by their coordinates.

The cut depends on the version of scikit-image: 0.14 gives the node counts of the official files, current versions give
the same on most MNIST images but about 45 nodes instead of 71 on one in six, and a tenth fewer nodes on CIFAR10. The
graphs made here are of the same kind as the official ones, not the same graphs.
"""

from dataclasses import dataclass

import numpy as np

from grit.errors import GritError
from grit.graphs.chunk import Array, ArrayGraph

_NUM_NEIGHBOURS = 8


@dataclass(frozen=True)
class SuperpixelSettings:
    """How the images of one data set are cut.

    Attributes:
        max_superpixels: No graph has more nodes.
        first_segments: How many segments SLIC is asked for first; fewer and fewer until the number of nodes fits.
        compactness: Weight of nearness against likeness of colour.
    """

    max_superpixels: int
    first_segments: int
    compactness: float


MNIST = SuperpixelSettings(max_superpixels=75, first_segments=95, compactness=0.25)
CIFAR10 = SuperpixelSettings(max_superpixels=150, first_segments=200, compactness=10.0)


def superpixel_graph(
    image: Array,
    *,
    label: int,
    max_superpixels: int,
    first_segments: int,
    compactness: float,
    rng: np.random.Generator,
) -> ArrayGraph:
    """The graph of one image, its nodes in random order.

    Args:
        image: (S, S) grey or (S, S, 3) colour, uint8.
        label: Class of the image.
        max_superpixels: As in `SuperpixelSettings`.
        first_segments: As in `SuperpixelSettings`.
        compactness: As in `SuperpixelSettings`.
        rng: Decides the order of the nodes.

    Returns:
        x (n, 3) or (n, 5) float32: mean intensity of every channel, then row and column of the centre, all in [0, 1].
        edge_attr (E, 1) float32: the weight of `knn_edges`. y (1, 1) int64.
    """
    side = len(image)
    if image.dtype != np.uint8 or image.shape not in ((side, side), (side, side, 3)):
        raise GritError(
            f"image must be uint8 of shape (S, S) or (S, S, 3), got {image.dtype} of shape {tuple(image.shape)}."
        )
    intensity = image / 255  # float64, which SLIC keeps
    superpixel = _segment(intensity, max_superpixels, first_segments, compactness)
    nodes = _node_features(intensity, superpixel)
    x = nodes[rng.permutation(len(nodes))]
    edge_index, weight = knn_edges(x[:, -2:])
    return ArrayGraph(
        x=x,
        edge_index=edge_index,
        edge_attr=weight.astype(np.float32)[:, None],
        y=np.array([[label]], dtype=np.int64),
    )


def knn_edges(coordinates: Array) -> tuple[Array, Array]:
    """Directed edges from every node to near ones, with a weight that falls with distance.

    ``A_ij = exp(-(d_ij / sigma_i)^2)``, made symmetric as ``(A + A^T) / 2``; ``sigma_i`` is an eighth of the sum of the
    9 smallest distances from i, its own 0 among them. Every node is joined to 8 of the 9 nodes j of largest ``A_ij``.

    Args:
        coordinates: (n, 2), in the order of the nodes, which must be random: it decides which of the 9 is left out.

    Returns:
        edge_index (2, 8n) int64, row 0 the source, ordered by source, then target; weight (8n,) float64. With at most 9
        nodes all pairs of different nodes are edges, n(n - 1) of them.
    """
    weight = _weights(coordinates.astype(np.float64))  # (n, n)
    num_nodes = len(coordinates)
    if num_nodes <= _NUM_NEIGHBOURS + 1:
        source, target = np.nonzero(~np.eye(num_nodes, dtype=bool))
    else:
        source = np.repeat(np.arange(num_nodes), _NUM_NEIGHBOURS)
        target = _eight_of_nine(weight).reshape(-1)
    return np.stack([source, target]).astype(np.int64), weight[source, target]


def _weights(coordinates: Array) -> Array:
    """A of `knn_edges`, (n, n), with a zero diagonal."""
    difference = coordinates[:, None] - coordinates[None]  # (n, n, 2)
    distance = np.sqrt((difference**2).sum(axis=2))  # (n, n)
    if len(coordinates) > _NUM_NEIGHBOURS:
        nearest = np.sort(distance, axis=1)[:, : _NUM_NEIGHBOURS + 1]  # (n, 9)
        scale = nearest.sum(axis=1, keepdims=True) / _NUM_NEIGHBOURS  # (n, 1)
    else:
        # There are no 9 distances to sum; the benchmark's code then takes 1.
        scale = np.ones((len(coordinates), 1))
    weight = np.exp(-((distance / (scale + 1e-8)) ** 2))
    weight = (weight + weight.T) / 2
    np.fill_diagonal(weight, 0.0)
    return weight  # type: ignore[no-any-return]


def _eight_of_nine(weight: Array) -> Array:
    """For every node, 8 of its 9 neighbours of largest weight: (n, 8), each row in ascending order.

    The benchmark's code takes the 9 largest by `np.argpartition` and cuts off the last, taking it for the node itself.
    But the diagonal is zero by then, so that it cuts off a neighbour: the nearest on a processor for which NumPy sorts
    short rows, any of them otherwise, as when the official files were made. That choice leaned towards the near ones
    because the median-of-three step puts a large weight last. Leaving out the larger of two random ones has almost the
    same frequencies (22, 19, 17, ... 0 % from the nearest to the ninth, against 24, 20, 17, ... 1 %) and is the same
    on every machine. The node order being random, the two of highest number are random ones.
    """
    others_first = weight - np.eye(len(weight))  # a weight may underflow to 0, and a node is not its own neighbour
    nine = np.sort(np.argsort(-others_first, axis=1, kind="stable")[:, : _NUM_NEIGHBOURS + 1], axis=1)  # (n, 9)
    last_two = np.take_along_axis(weight, nine[:, -2:], axis=1)  # (n, 2)
    left_out = _NUM_NEIGHBOURS - 1 + last_two.argmax(axis=1, keepdims=True)  # (n, 1) position 7 or 8 of the nine
    return nine[np.arange(_NUM_NEIGHBOURS + 1) != left_out].reshape(-1, _NUM_NEIGHBOURS)  # type: ignore[no-any-return]


def _segment(intensity: Array, max_superpixels: int, first_segments: int, compactness: float) -> Array:
    """The number of its superpixel for every pixel, (S, S), numbers from 0 without gaps."""
    try:
        from skimage.segmentation import slic
        from skimage.util import regular_grid
    except ImportError as error:
        raise GritError("superpixels need scikit-image: pip install 'torch-grit[image]'.") from error
    channel_axis = None if intensity.ndim == 2 else -1
    tried = None
    for num_segments in range(first_segments, 0, -1):
        # SLIC uses the number only to lay a grid of first centres. Most numbers give the same grid as the one before,
        # hence the same superpixels: skipping them saves 36 of 38 runs on a CIFAR10 image.
        grid = regular_grid((1, *intensity.shape[:2]), num_segments)
        if grid == tried:
            continue
        tried = grid
        labels = slic(
            intensity, n_segments=num_segments, compactness=compactness, channel_axis=channel_axis, start_label=0
        )
        names, superpixel = np.unique(labels, return_inverse=True)
        if len(names) <= max_superpixels:
            return superpixel.reshape(labels.shape)
    raise GritError(
        f"no way to cut the image into at most {max_superpixels} superpixels from {first_segments} segments."
    )


def _node_features(intensity: Array, superpixel: Array) -> Array:
    """Mean intensity of every channel and centre of mass over side, (n, channels + 2) float32."""
    side = len(intensity)
    rows, columns = np.indices((side, side))
    channels = intensity.reshape(side * side, -1).T  # (channels, S * S)
    per_pixel = [*channels, rows.reshape(-1) / side, columns.reshape(-1) / side]
    member = superpixel.reshape(-1)
    totals = np.stack([np.bincount(member, weights=values) for values in per_pixel], axis=1)  # (n, channels + 2)
    return (totals / np.bincount(member)[:, None]).astype(np.float32)
