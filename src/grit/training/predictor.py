"""A trained model, ready to use: `grit.load`."""

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from grit.batches.loader import Loader
from grit.batches.pair_batch import PairBatch
from grit.batches.sampling import batches_within_budget
from grit.datasets.molecules.smiles import MAX_ATOMS, why_no_smiles
from grit.datasets.pipeline.featurise_rows import ROWS_PER_PIECE, Featurise, MoleculeRow, Piece, batched
from grit.errors import GritError, shown
from grit.graphs.chunk import Array
from grit.graphs.convert import is_graph, pack, pack_chunk
from grit.graphs.packed import PackedGraphs
from grit.graphs.store import GraphStore
from grit.learning.task import Task
from grit.models.grit import Grit
from grit.recipe.builder import build_model
from grit.recipe.config import Recipe
from grit.training.calibration import Calibration, read_calibration, with_intervals, with_temperature
from grit.training.checkpoint import load_weights, previous, read_checkpoint, read_last
from grit.training.conformal import check_confidence
from grit.training.device import check_device
from grit.training.evaluation import predict_batch
from grit.training.fit_folder import fitted_models
from grit.training.neighbours import Neighbours, read_neighbours
from grit.training.output_columns import class_numbers, prediction_columns
from grit.training.predictions import Predictions, joined, spread_out
from grit.training.run_folder import RunData, RunFolder

if TYPE_CHECKING:
    from torch_geometric.data import Data


class Trained(NamedTuple):
    """One trained network, its recipe, and what it was trained on."""

    network: nn.Module
    recipe: Recipe
    data: RunData


def load(path: str | Path, device: str = "cpu") -> "Predictor":
    """A trained predictor from the folder of a fit, from a run folder, or from a checkpoint file inside one.

    Args:
        path: The folder of a fit, whose models are used together; a run folder (its best epoch is used); or
            ``RUN/checkpoints/last.safetensors`` and the like.
        device: Where to compute.
    """
    path = Path(path)
    folders = fitted_models(path) if path.is_dir() else None
    if folders is None:
        return Predictor(*load_run(path), device)
    first, *others = map(load_run, folders)
    return Predictor(
        *first,
        device,
        others=others,
        calibration=read_calibration(path, first.data.task),
        neighbours=read_neighbours(path),
    )


def load_run(path: Path) -> Trained:
    """The network of a run folder (its best epoch), or of a checkpoint file inside one."""
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
    return Trained(network, recipe, data)


class Predictor:
    """A trained model, or several whose mean is predicted, with all that it needs to read molecules or graphs.

    Args:
        network: The model.
        recipe: What it was trained with.
        data: What it was trained on.
        device: Where to compute.
        others: Further models of the same kind.
        calibration: What intervals, sets and temperatures rest on, where that is known.
        neighbours: The training molecules, where these are known.

    Attributes:
        recipe: What it was trained with.
        data: What it was trained on.
        task: What it predicts.
        spec: How its batches are made.
    """

    def __init__(
        self,
        network: nn.Module,
        recipe: Recipe,
        data: RunData,
        device: str = "cpu",
        *,
        others: Sequence[Trained] = (),
        calibration: Calibration | None = None,
        neighbours: Neighbours | None = None,
    ) -> None:
        check_device(device)
        for other in others:
            if other.recipe.batch_spec() != recipe.batch_spec() or (other.data.graphs, other.data.task) != (
                data.graphs,
                data.task,
            ):
                raise GritError("the models of an ensemble must read and predict the same; these do not.")
        self._members = [
            (each.network.to(device).eval(), Task(each.data.task, np.array(each.data.mean), np.array(each.data.scale)))
            for each in (Trained(network, recipe, data), *others)
        ]
        self.recipe, self.data, self.spec = recipe, data, recipe.batch_spec()
        self.device = torch.device(device)
        self.task = self._members[0][1]
        self.calibration, self.neighbours = calibration, neighbours

    @property
    def num_members(self) -> int:
        """How many models there are."""
        return len(self._members)

    @property
    def network(self) -> nn.Module:
        """The model, if there is one."""
        if len(self._members) > 1:
            raise GritError(
                f"this needs a single model, and there are {len(self._members)} here. Name one of them: RUN/models/0."
            )
        return self._members[0][0]

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of what is predicted."""
        return self.data.task.targets

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes; empty for regression and several labels."""
        return self.data.task.classes

    def predict(self, items: Sequence[str] | Sequence["Data"]) -> Any:
        """Numbers in the targets' own units, or probabilities.

        Args:
            items: SMILES, or PyG graphs like those of training.

        Returns:
            (n, num_outputs) for graphs. For nodes and edges a list with an array for each graph. A SMILES that cannot be read,
            or an entry that is not text, gives NaN, and one warning names them by their place in the list, from 0.
        """
        return self._apply(items, self._outputs)

    def predictions(self, smiles: Sequence[str], confidence: float | None = None) -> Predictions:
        """Predictions for molecules, and how sure they are.

        Args:
            smiles: What to predict. One that cannot be read gives NaN, and the reason is its note.
            confidence: Of intervals and sets; that of the fit if not given.
        """
        self.check_smiles_suffice()
        featurise, rows = self.featurise(), []
        for number, each in enumerate(smiles):
            rows.append(MoleculeRow(number, str(each), (), why_no_smiles(each), number))
        parts = []
        for group in batched(rows, ROWS_PER_PIECE):
            piece = featurise(group)
            reasons = {each.line: each.reason for each in piece.skipped}
            places = np.array([-1 if row.row in reasons else 0 for row in group])
            places[places == 0] = np.arange((places == 0).sum())
            found = self.predictions_of(piece, confidence)
            parts.append(spread_out(found, places, [reasons.get(row.row, "") for row in group]))
        if not parts:
            raise GritError("there is nothing to predict: the list is empty.")
        return joined(parts)

    def predict_classes(self, items: Sequence[str] | Sequence["Data"]) -> list[str]:
        """Name of the likeliest class of each graph."""
        if not self.classes or self.data.graphs.level != "graph":
            raise GritError("predict_classes is for graphs of one of several classes.")
        return [self.classes[number] for number in class_numbers(self.predict(items))]

    def embed(self, items: Sequence[str] | Sequence["Data"]) -> Any:
        """The representation that the head reads, (n, D) for graphs, NaN for unreadable SMILES."""
        network = self.network
        if not isinstance(network, Grit):
            raise GritError(f"embed is for GRIT; this run trained {self.recipe.model.name!r}.")
        return self._apply(items, lambda batch: network.embed(batch).cpu().numpy())

    def evaluate(self, store: GraphStore, split: str = "test") -> dict[str, float]:
        """Metrics over a split of a data set with the same features and targets."""
        outputs, targets = self.predict_store(store, split)
        return self.task.metrics(outputs, targets)

    def predict_store(self, store: GraphStore, split: str | None = None) -> tuple[Array, Array]:
        """Outputs and targets of a split of a store, or of all its graphs, in order.

        Of a store whose nodes are divided (`GraphStore.divides_nodes`) those of the split's nodes.
        """
        members, targets = self.predict_members(store, split)
        return self._at_temperature(members.mean(0)), targets

    def predict_members(self, store: GraphStore, split: str | None = None) -> tuple[Array, Array]:
        """As `predict_store`, but with the outputs of every model, (S, R, O), before any temperature."""
        found = [(outputs, targets) for _, outputs, targets in self._member_batches(store, split)]
        outputs = np.concatenate([each for each, _ in found], axis=1)
        targets = np.concatenate([each for _, each in found])
        if split is not None and store.divides_nodes:
            counted = store.in_split(store.split(split), split)
            outputs, targets = outputs[:, counted], targets[counted]
        return outputs, targets

    def predict_batches(
        self, store: GraphStore, split: str | None = None
    ) -> Iterator[tuple[PackedGraphs, Array, Array]]:
        """Batch by batch: graphs, outputs and targets of all their nodes, targets outside the split being NaN."""
        for graphs, outputs, targets in self._member_batches(store, split):
            yield graphs, self._at_temperature(outputs.mean(0)), targets

    def _member_batches(self, store: GraphStore, split: str | None) -> Iterator[tuple[PackedGraphs, Array, Array]]:
        """As `predict_batches`, with the outputs of every model, (S, R, O)."""
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
                on_device = batch.to(self.device)
                targets = np.zeros((0, 0)) if on_device.y is None else on_device.y.cpu().numpy()
                outputs = self._member_outputs(on_device)
                yield batch.graphs, outputs, targets if on_device.y is not None else np.zeros((outputs.shape[1], 0))

    def _member_outputs(self, batch: PairBatch) -> Array:
        """(S, R, O)."""
        return np.stack([predict_batch(network, task, batch)[0] for network, task in self._members])

    def _outputs(self, batch: PairBatch) -> Array:
        """(R, O), what is given to users."""
        return self._at_temperature(self._member_outputs(batch).mean(0))

    def _at_temperature(self, outputs: Array) -> Array:
        return outputs if self.calibration is None else with_temperature(self.task.spec, self.calibration, outputs)

    def weights_digest(self) -> str:
        """A checksum of all weights, and of the calibration: whether two predictors are the same."""
        digest = hashlib.sha256(b"" if self.calibration is None else self.calibration.model_dump_json().encode())
        for network, _ in self._members:
            for name, weight in sorted(network.state_dict().items()):
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
        return Featurise.named(
            self.data.molecules,
            with_fingerprints=self.neighbours is not None,
            descriptors=() if inputs is None else inputs.descriptors,
        )

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
        return self.predictions_of(piece).outputs

    def predictions_of(self, piece: Piece, confidence: float | None = None) -> Predictions:
        """Predictions for the graphs of a `Piece`, and how sure they are.

        Args:
            piece: Rows that were made graphs by `featurise`.
            confidence: Of intervals and sets; that of the fit if not given.
        """
        members = np.zeros((len(self._members), 0, self.data.task.num_outputs))
        if piece.chunk is not None:
            with torch.no_grad():
                parts = self._parts(pack_chunk(piece.chunk))
                members = np.concatenate([self._member_outputs(self._batch(part)) for part in parts], axis=1)
        spread = members.std(0, ddof=1) if len(members) > 1 else None
        found = Predictions(self._at_temperature(members.mean(0)), spread)
        if self.calibration is not None:
            sure = self.calibration.confidence if confidence is None else check_confidence(confidence)
            found = with_intervals(self.task.spec, self.calibration, found, sure)
        elif confidence is not None:
            raise GritError(
                "a single run has no intervals: --confidence is for the folder of a grit fit, such as runs/mine."
            )
        if self.neighbours is not None:
            packed = np.zeros((0, 256), dtype=np.uint8) if piece.fingerprints is None else piece.fingerprints
            similarity = self.neighbours.similarity(packed)
            found = found._replace(similarity=similarity, notes=self.neighbours.notes(similarity))
        return found

    def output_columns(self) -> list[str]:
        """Names of the columns that predictions fill, without the note."""
        is_sure = self.calibration is not None
        return prediction_columns(
            self.task.spec,
            has_intervals=is_sure,
            has_sets=is_sure,
            has_similarity=self.neighbours is not None,
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
    def _apply(self, items: Sequence[str] | Sequence["Data"], function: Callable[[PairBatch], Array]) -> Any:
        if isinstance(items, str) or is_graph(items):
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
    others = [(number, item) for number, item in enumerate(items) if not is_graph(item)]
    if others and len(others) < len(items):
        number, item = others[0]
        raise GritError(
            f"{place.format(number)} is not a graph but {type(item).__name__}; pass graphs alone, or SMILES alone."
        )
    return len(others) < len(items)
