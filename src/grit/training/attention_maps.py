"""What a trained model attends to: the attention weights of every layer and head for one molecule."""

from contextlib import ExitStack

import numpy as np
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from grit import kernels
from grit.datasets.pipeline.featurise_rows import MoleculeRow
from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.convert import pack_chunk
from grit.graphs.pairs import choose_pairs
from grit.models.grit import Grit
from grit.nn.attention import AttentionOutput
from grit.training.predictor import Predictor


def attention_maps(predictor: Predictor, smiles: str) -> Array:
    """Attention weights of a molecule, in the order of the atoms in its SMILES.

        maps = attention_maps(grit.load("runs/zinc"), "CC(=O)Oc1ccccc1C(=O)O")
        maps[layer, head, i, j]     # how much atom i attends to atom j

    Args:
        predictor: A trained GRIT on molecules.
        smiles: The molecule.

    Returns:
        (L, H, n, n). Rows sum to 1; pairs that a sparse attention leaves out are 0.
    """
    network = predictor.network
    if not isinstance(network, Grit):
        raise GritError(f"attention maps are for GRIT; this run trained {predictor.recipe.model.name!r}.")
    if predictor.data.molecules is None:
        raise GritError(
            f"the run was trained on {predictor.data.name!r}, whose graphs were not made from SMILES, so that a SMILES cannot be "
            "turned into its input. Attention maps need a run on molecules, such as one of grit fit or grit demo."
        )
    predictor.check_smiles_suffice()
    piece = predictor.featurise()([MoleculeRow(0, smiles, ())])
    if piece.chunk is None:
        reason = piece.skipped[0].reason
        raise GritError(
            f"the run, trained on {predictor.data.name!r}, cannot read the SMILES {smiles!r}: {reason}. "
            "Give a molecule such as CC(=O)Oc1ccccc1C(=O)O, with elements that occur in its data."
        )
    seen: dict[int, Tensor] = {}
    with ExitStack() as hooks, kernels.use("plain"):  # the fused form never writes the weights down
        for number, layer in enumerate(network.layers):
            hooks.enter_context(_watch(layer.get_submodule("attention"), number, seen))
        predictor.predict_piece(piece)
    pairs = choose_pairs(pack_chunk(piece.chunk), predictor.recipe.model.pairs)
    expected = (pairs.num_pairs, predictor.recipe.model.num_heads)
    maps = np.zeros((len(network.layers), expected[1], pairs.num_nodes, pairs.num_nodes))
    for number in range(len(network.layers)):
        if number not in seen or seen[number].shape != expected:
            raise GritError(
                f"layer {number} gave no attention weights: its attention module was not called, or made none."
            )
        maps[number][:, pairs.query.numpy(), pairs.key.numpy()] = seen[number].T.double().numpy()
    return maps


def _watch(attention: nn.Module, number: int, seen: dict[int, Tensor]) -> RemovableHandle:
    def keep(module: nn.Module, given: tuple[object, ...], output: AttentionOutput) -> None:
        seen[number] = output.weights.detach().cpu()

    return attention.register_forward_hook(keep)
