"""What ``grit plot`` reads, checks, writes and prints."""

import os
from pathlib import Path
from shlex import quote

import numpy as np

from grit.cli.picture_files import check_picture, save
from grit.datasets.molecules.smiles import read_smiles
from grit.drawing.compositions import attention_figure, graph_edges, joined_pairs, rrwp_figure
from grit.drawing.graph_drawing import Drawing, GraphDrawing
from grit.drawing.molecule_drawing import MoleculeDrawing
from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.graph_files import GRAPHS, read_graph
from grit.studies.figures import walks
from grit.training.attention_maps import attention_maps
from grit.training.predictor import load

MAX_NODES = 400  # more cannot be told apart in a picture, and every pair of nodes may be a link
MAX_STEPS, MAX_PANELS = 100, 16


def plot_rrwp(source: str, out: Path, steps: str, *, matrices: bool) -> None:
    """Draw RRWP of a molecule or a graph file."""
    check_picture(out)
    lengths = parse_steps(steps)
    drawing, edges, what = _drawing_of(source)
    n = len(drawing.positions)
    probabilities = walks(edges, n, lengths)
    save(rrwp_figure(drawing, probabilities, lengths, with_matrices=matrices), out)
    joined = ", ".join(f"{count:,} by {k}" for k, count in zip(lengths, joined_pairs(probabilities), strict=True))
    print(f"{out}: {what}; of {n * (n - 1):,} ordered pairs, walks join {joined} step{'s' * (lengths[-1] != 1)}")
    if isinstance(drawing, MoleculeDrawing):
        print(f"Next: grit plot attention RUN {quote(source)} -o attention.png shows what a trained run attends to")
    else:
        print(f"Next: grit plot rrwp {quote(source)} --steps 2,4,8,16 --matrices -o longer.png")


def plot_attention(run: Path, smiles: str, out: Path, layer: int | None, head: int | None, atom: int | None) -> None:
    """Draw the attention of a trained run over a molecule."""
    check_picture(out)
    predictor = load(run)
    maps = attention_maps(predictor, smiles)  # (L, H, n, n)
    num_layers, num_heads, n, _ = maps.shape
    layer = num_layers - 1 if layer is None else _within("--layer", layer, num_layers, f"the run {str(run)!r}")
    heads = maps[layer]
    weights = heads.mean(0) if head is None else heads[_within("--head", head, num_heads, f"the run {str(run)!r}")]
    favourite = int(weights.mean(0).argmax())
    query = favourite if atom is None else _within("--atom", atom, n, f"the molecule {smiles!r}")
    drawing = MoleculeDrawing(smiles, numbers=True)
    which = "mean of all heads" if head is None else f"head {head}"
    save(attention_figure(drawing, weights, query, f"{predictor.data.name}: layer {layer}, {which}"), out)
    print(
        f"{out}: {n} atoms, layer {layer} of 0 to {num_layers - 1}, "
        f"{which} of 0 to {num_heads - 1}; most attended to is {drawing.names[favourite]}, "
        f"with a mean weight of {weights.mean(0)[favourite]:.3f}"
    )
    other = (0 if head is None else head + 1) % num_heads
    print(
        f"Next: grit plot attention {quote(str(run))} {quote(smiles)} --layer {layer} --head {other} --atom {query} "
        f"-o {quote(str(out.with_stem(f'{out.stem}-{other}')))}"
    )


def parse_steps(text: str) -> list[int]:
    """``4`` -> [1, 2, 3, 4]; ``1,2,8`` -> [1, 2, 8]."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1 or max(numbers) > MAX_STEPS:
        raise GritError(
            f"--steps takes a number such as 4 (walks of 1 to 4 steps) or numbers with commas between such as 1,2,8, "
            f"each from 1 to {MAX_STEPS}; got {text!r}."
        )
    chosen = list(range(1, numbers[0] + 1)) if "," not in text else sorted(set(numbers))
    if len(chosen) > MAX_PANELS:
        raise GritError(
            f"--steps {text} would be {len(chosen)} panels; at most {MAX_PANELS} fit a picture. Choose some, "
            "such as --steps 1,2,4,8,16."
        )
    return chosen


def _drawing_of(source: str) -> tuple[Drawing, Array, str]:
    """The drawing, the (2, E) edge index, and a description of a SMILES or a graph file."""
    path = Path(source)
    known = path.suffix.lower() in GRAPHS
    if os.path.isfile(source):
        if not known:
            raise GritError(
                f"{source!r}: a graph file must end in one of {', '.join(GRAPHS)}. "
                "Save the graph as one of these, for example by networkx.write_graphml."
            )
        graph = read_graph(path, MAX_NODES)
        names = [str(node) for node in graph.nodes]
        readable = len(names) <= 24 and max(map(len, names)) <= 4
        drawing = GraphDrawing(graph, names=names if readable else None)
        directed = ", directed and drawn without arrows" if graph.is_directed() else ""
        what = f"{len(names):,} nodes, {graph.number_of_edges():,} edges{directed}"
        return drawing, graph_edges(graph), what
    if known:
        raise GritError(f"there is no file {source!r}. Expected a graph file ({', '.join(GRAPHS)}) or a SMILES.")
    try:
        atoms = read_smiles(source).GetNumAtoms()
    except GritError as error:
        raise GritError(
            f"{source!r} is neither a file nor a readable SMILES ({error}). Give a molecule such as "
            f"'CC(=O)Oc1ccccc1C(=O)O', or a graph file that ends in one of {', '.join(GRAPHS)}."
        ) from None
    if atoms > MAX_NODES:
        raise GritError(f"the molecule has {atoms:,} atoms; more than {MAX_NODES} are too many for a picture.")
    molecule = MoleculeDrawing(source)
    edges = np.concatenate([molecule.bonds, molecule.bonds[:, ::-1]]).T
    return molecule, edges, f"{atoms} atoms, {len(molecule.bonds)} bonds"


def _within(option: str, value: int, count: int, where: str) -> int:
    if not 0 <= value < count:
        kind = option.lstrip("-")
        raise GritError(f"{option} {value}: {where} has the {kind}s 0 to {count - 1}.")
    return value
