"""A trained model, ready to use: `grit.load`."""

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from grit.batches.loader import Loader
from grit.batches.pair_batch import PairBatch
from grit.batches.sampling import batches_within_budget
from grit.datasets.molecules.smiles import MAX_ATOMS, why_no_smiles
from grit.datasets.pipeline.featurise_rows import Featurise, MoleculeRow, Piece, batched
from grit.errors import GritError, shown
from grit.graphs.chunk import Array
from grit.graphs.convert import pack, pack_chunk
from grit.graphs.packed import PackedGraphs
from grit.graphs.store import GraphStore
from grit.learning.task import Task
from grit.models.grit import Grit
from grit.recipe.builder import build_model
from grit.recipe.config import Recipe
from grit.training.checkpoint import previous, read_checkpoint, read_last
from grit.training.device import check_device
from grit.training.evaluation import predict_batch
from grit.training.loop import load_weights
from grit.training.output_columns import class_numbers
from grit.training.run_folder import RunData, RunFolder


def load(path: str | Path, device: str = "cpu") -> "Predictor":
    """A trained predictor from a run folder, or from a checkpoint file inside one.

    Args:
        path: The run folder (its best epoch is used), or ``RUN/checkpoints/last.safetensors`` and the like.
        device: Where to compute.
    """
    path = Path(path)
    if path.is_file():
        folder = RunFolder.open(path.parent.parent)
        checkpoint = read_checkpoint(path)
    else:
        folder = RunFolder.open(path)
        chosen = folder.best if folder.best.exists() else folder.last
        if not (chosen.exists() or previous(chosen).exists()):
            raise GritError(f"the run {str(path)!r} has no checkpoint yet.")
        checkpoint, _ = read_last(chosen)
    folder.check_described(checkpoint.state)
    recipe, data = folder.recipe(), folder.data()
    network = build_model(recipe, data.graphs, statistics=data.statistics)
    load_weights(network, checkpoint.under("model."), str(path))
    return Predictor(network, recipe, data, device)


class Predictor:
    """A trained model with all that it needs to read molecules or graphs.

    Attributes:
        recipe: What it was trained with.
        data: What it was trained on.
        task: What it predicts.
        spec: How its batches are made.
    """

    def __init__(self, network: nn.Module, recipe: Recipe, data: RunData, device: str = "cpu") -> None:
        check_device(device)
        self.network = network.to(device).eval()
        self.recipe, self.data, self.spec = recipe, data, recipe.batch_spec()
        self.device = torch.device(device)
        self.task = Task(data.task, np.array(data.mean), np.array(data.scale))

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of what is predicted."""
        return self.data.task.targets

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes; empty for regression and several labels."""
        return self.data.task.classes

    def predict(self, items: Sequence[str] | Sequence[Data]) -> Any:
        """Numbers in the targets' own units, or probabilities.

        Args:
            items: SMILES, or PyG graphs like those of training.

        Returns:
            (n, num_outputs) for graphs. For nodes and edges a list with an array for each graph. A SMILES that cannot be read,
            or an entry that is not text, gives NaN, and one warning names them by their place in the list, from 0.
        """
        return self._apply(items, lambda batch: predict_batch(self.network, self.task, batch)[0])

    def predict_classes(self, items: Sequence[str] | Sequence[Data]) -> list[str]:
        """Name of the likeliest class of each graph."""
        if not self.classes or self.data.graphs.level != "graph":
            raise GritError("predict_classes is for graphs of one of several classes.")
        return [self.classes[number] for number in class_numbers(self.predict(items))]

    def embed(self, items: Sequence[str] | Sequence[Data]) -> Any:
        """The representation that the head reads, (n, D) for graphs, NaN for unreadable SMILES."""
        if not isinstance(self.network, Grit):
            raise GritError(f"embed is for GRIT; this run trained {self.recipe.model.name!r}.")
        network = self.network
        return self._apply(items, lambda batch: network.embed(batch).cpu().numpy())

    def evaluate(self, store: GraphStore, split: str = "test") -> dict[str, float]:
        """Metrics over a split of a data set with the same features and targets."""
        outputs, targets = self.predict_store(store, split)
        return self.task.metrics(outputs, targets)

    def predict_store(self, store: GraphStore, split: str | None = None) -> tuple[Array, Array]:
        """Outputs and targets of a split of a store, or of all its graphs, in order.

        Of a store whose nodes are divided (`GraphStore.divides_nodes`) those of the split's nodes.
        """
        found = [(outputs, targets) for _, outputs, targets in self.predict_batches(store, split)]
        outputs, targets = (np.concatenate(parts) for parts in zip(*found, strict=True))
        if split is not None and store.divides_nodes:
            counted = store.in_split(store.split(split), split)
            outputs, targets = outputs[counted], targets[counted]
        return outputs, targets

    def predict_batches(
        self, store: GraphStore, split: str | None = None
    ) -> Iterator[tuple[PackedGraphs, Array, Array]]:
        """Batch by batch: graphs, outputs and targets of all their nodes, targets outside the split being NaN."""
        if store.schema != self.data.graphs:
            raise GritError(
                f"the store {store.name!r} has other features or targets than the run was trained on: nodes {store.schema.node}, "
                f"edges {store.schema.edge}; expected nodes {self.data.graphs.node}, edges {self.data.graphs.edge}."
            )
        indices = np.arange(len(store)) if split is None else store.split(split)
        loader = Loader(
            store,
            indices,
            self.spec,
            batch_size=self.recipe.train.batch_size,
            max_pairs=self.recipe.train.max_pairs,
            split=split or "all",
        )
        for batch in loader:
            with torch.no_grad():
                yield batch.graphs, *predict_batch(self.network, self.task, batch.to(self.device))

    def weights_digest(self) -> str:
        """A checksum of all weights: whether two predictors are the same."""
        digest = hashlib.sha256()
        for name, weight in sorted(self.network.state_dict().items()):
            digest.update(name.encode())
            digest.update(weight.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def featurise(self) -> Featurise:
        """How SMILES become the graphs that the model was trained on."""
        if self.data.molecules is None:
            raise GritError(
                f"the run was trained on {self.data.name!r}, which holds no molecules: pass PyG graphs, not SMILES."
            )
        inputs = self.data.inputs
        return Featurise.named(self.data.molecules, descriptors=() if inputs is None else inputs.descriptors)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of a table that the model reads beside the SMILES."""
        return () if self.data.inputs is None else self.data.inputs.columns

    def check_smiles_suffice(self) -> None:
        """Raise if the model reads more of a molecule than its SMILES says."""
        if self.columns:
            raise GritError(
                f"the model reads {', '.join(map(repr, self.columns))} of each molecule, too, which SMILES alone do not say. "
                "Predict a table that has these columns: grit predict RUN INPUT.csv -o OUT.csv."
            )

    def predict_piece(self, piece: Piece) -> Array:
        """Outputs of the graphs of a `Piece`, (n, num_outputs)."""
        if piece.chunk is None:
            return np.zeros((0, self.data.task.num_outputs))
        graphs = pack_chunk(piece.chunk)
        with torch.no_grad():
            return np.concatenate(
                [predict_batch(self.network, self.task, self._batch(part))[0] for part in self._parts(graphs)]
            )

    def _batch(self, graphs: PackedGraphs) -> PairBatch:
        return PairBatch.from_graphs(graphs, self.spec).to(self.device)

    def _parts(self, graphs: PackedGraphs) -> Iterable[PackedGraphs]:
        """The graphs in batches of the recipe's size, with no more pairs than the largest molecule has."""
        budget = self.recipe.train.max_pairs or MAX_ATOMS**2
        pairs = graphs.nodes_per_graph.numpy() ** 2
        for part in batches_within_budget(np.arange(len(graphs)), pairs, self.recipe.train.batch_size, budget):
            yield graphs.part(int(part[0]), int(part[-1]) + 1)

    @torch.no_grad()
    def _apply(self, items: Sequence[str] | Sequence[Data], function: Callable[[PairBatch], Array]) -> Any:
        if isinstance(items, str | Data):
            raise GritError("expected a list of SMILES or of graphs, got a single one: write [item].")
        if len(items) == 0:
            raise GritError("there is nothing to predict: the list is empty.")
        if not are_graphs(items, "entry {}"):
            return self._apply_to_smiles(items, function)
        results = []
        for group in batched(items, self.recipe.train.batch_size):
            graphs = pack(group)
            if graphs.edge_weight is not None:
                raise GritError(
                    "the graphs carry edge_weight, and the run was trained on walks without weights. Delete it "
                    "(del data.edge_weight)."
                )
            rows = function(self._batch(graphs))
            results += [rows] if self.data.graphs.level == "graph" else np.split(rows, self._ends(graphs))
        return np.concatenate(results) if self.data.graphs.level == "graph" else results

    def _ends(self, graphs: PackedGraphs) -> list[int]:
        if self.data.graphs.level == "node" or graphs.label_index is None:
            return graphs.node_ptr[1:-1].tolist()
        graph = graphs.graph_of_node[graphs.label_index[0]]
        counts: Tensor = torch.bincount(graph, minlength=len(graphs))
        return counts.cumsum(0)[:-1].tolist()

    def _apply_to_smiles(self, items: Sequence[object], function: Callable[[PairBatch], Array]) -> Array:
        self.check_smiles_suffice()
        featurise = self.featurise()
        unreadable: list[str] = []
        found: list[tuple[Array, Array]] = []
        rows = [MoleculeRow(number, str(each), (), why_no_smiles(each)) for number, each in enumerate(items)]
        for group in batched(rows, self.recipe.train.batch_size):
            piece = featurise(group)
            unreadable += [f"{each.line} ({shown(each.content)}: {each.reason})" for each in piece.skipped]
            if piece.chunk is not None:
                parts = [function(self._batch(part)) for part in self._parts(pack_chunk(piece.chunk))]
                found.append((piece.rows, np.concatenate(parts)))
        if not found:
            raise GritError(f"none of the SMILES can be read: {'; '.join(unreadable[:5])}.")
        out = np.full((len(items), found[0][1].shape[1]), np.nan)
        for numbers, values in found:
            out[numbers] = values
        if unreadable:
            warnings.warn(f"{len(unreadable)} SMILES cannot be read: {'; '.join(unreadable[:5])}", stacklevel=4)
        return out


def are_graphs(items: Sequence[object], place: str) -> bool:
    """Whether a list holds graphs and not SMILES; an error if it holds both.

    Args:
        items: SMILES, or PyG graphs.
        place: How the message names an entry; ``{}`` stands for its number, from 0.
    """
    others = [(number, item) for number, item in enumerate(items) if not isinstance(item, Data)]
    if others and len(others) < len(items):
        number, item = others[0]
        raise GritError(
            f"{place.format(number)} is not a graph but {type(item).__name__}; pass graphs alone, or SMILES alone."
        )
    return len(others) < len(items)
