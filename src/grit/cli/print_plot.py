"""What ``grit plot`` writes and prints."""

from pathlib import Path
from shlex import quote

from grit.cli.picture_files import check_picture, save
from grit.drawing.compositions import attention_figure, joined_pairs, rrwp_figure
from grit.drawing.molecule_drawing import MoleculeDrawing
from grit.drawing.read_drawing import read_drawing
from grit.errors import GritError
from grit.studies.figures import walks
from grit.training.attention_maps import attention_maps
from grit.training.predictor import load

MAX_STEPS, MAX_PANELS = 100, 16


def plot_rrwp(source: str, out: Path, steps: str, *, matrices: bool) -> None:
    """Draw RRWP of a molecule or a graph file."""
    check_picture(out)
    lengths = parse_steps(steps)
    drawing, edges, what = read_drawing(source)
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


def _within(option: str, value: int, count: int, where: str) -> int:
    if not 0 <= value < count:
        kind = option.lstrip("-")
        raise GritError(f"{option} {value}: {where} has the {kind}s 0 to {count - 1}.")
    return value
