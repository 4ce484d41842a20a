"""One large graph whose nodes are divided by masks, as in Cora: learn from a few labelled nodes, predict all others.

Papers that cite each other and the words that they use. The data is made here, of the size of Cora; with PyG's own it is
``from_pyg(Planetoid("data", "Cora"), out="stores/cora")``. The same from the command line: ``grit train own-nodes
dataset=stores/cora``, then ``grit evaluate RUN --split val`` and ``grit predict RUN stores/cora -o OUT.csv``.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch_geometric.data import Data

import grit
from grit.datasets import from_pyg

SUBJECTS = 7


def citations(nodes=2708, words=1433, links=5278, labelled=20, val=500, test=1000, seed=0):
    """Papers of seven subjects: four of five links stay within a subject, three of ten words are the subject's own."""
    rng = np.random.default_rng(seed)
    subject = rng.integers(0, SUBJECTS, nodes)
    of_subject = [np.flatnonzero(subject == number) for number in range(SUBJECTS)]
    vocabulary = np.array_split(rng.permutation(words), SUBJECTS)
    x = np.zeros((nodes, words), dtype=np.float32)
    for paper in range(nodes):
        own = rng.random(18) < 0.3
        x[paper, np.where(own, rng.choice(vocabulary[subject[paper]], 18), rng.integers(0, words, 18))] = 1
    edges: set[tuple[int, int]] = set()
    while len(edges) < links:
        citing = int(rng.integers(nodes))
        cited = int(rng.choice(of_subject[subject[citing]]) if rng.random() < 0.8 else rng.integers(nodes))
        if citing != cited:
            edges.add((min(citing, cited), max(citing, cited)))
    once = torch.tensor(sorted(edges)).t()
    train = np.concatenate([rng.choice(members, labelled, replace=False) for members in of_subject])
    others = rng.permutation(np.setdiff1d(np.arange(nodes), train))
    chosen = {"train_mask": train, "val_mask": others[:val], "test_mask": others[val : val + test]}
    masks = {name: torch.from_numpy(np.isin(np.arange(nodes), members)) for name, members in chosen.items()}
    edge_index = torch.cat([once, once.flip(0)], 1)
    return Data(x=torch.from_numpy(x), edge_index=edge_index, y=torch.from_numpy(subject), **masks)


def from_words_alone(data):
    """Accuracy on the test nodes of a classifier that reads no links."""
    model = LogisticRegression(max_iter=1000).fit(data.x[data.train_mask], data.y[data.train_mask])
    return float(model.score(data.x[data.test_mask], data.y[data.test_mask]))


def main(epochs=100, **size):
    folder = Path(tempfile.mkdtemp())
    data = citations(**size)
    store = from_pyg(data, name="citations", out=folder / "citations", say=print)
    recipe = grit.load_recipe("own-nodes", f"dataset={folder / 'citations'}", f"train.epochs={epochs}")
    result = grit.train(recipe, folder / "run", store=store)
    words = from_words_alone(data)
    print(
        f"test accuracy {result['test']['accuracy']:.2f}, from the words alone {words:.2f}, by chance {1 / SUBJECTS:.2f}"
    )
    predictor = grit.load(folder / "run")
    (probabilities,) = predictor.predict([data])  # of all nodes, (n, 7)
    print(f"paper 0 is of subject {probabilities[0].argmax()}, says the model; it is of subject {int(data.y[0])}")
    return result, words, probabilities


if __name__ == "__main__":
    main()
