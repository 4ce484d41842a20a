"""``grit export RUN -o model.onnx``."""

from pathlib import Path
from typing import Annotated

import typer

from grit.cli.options import Plugins


def export(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The file to write; its ending names the format: .onnx, .pt2 (PyTorch) ..."),
    ],
    plugin: Plugins = None,
) -> None:
    """Write a trained run as one file that predicts without this library, and check that it does."""
    from grit.export.export import check_export_path
    from grit.export.export import export as export_predictor
    from grit.export.formats import FORMATS
    from grit.training.predictor import load

    check_export_path(out)
    done = export_predictor(load(run), out)
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB; inputs {', '.join(done.inputs)}; output prediction")
    print(
        f"checked on {done.num_graphs} random graphs of 1 to 60 nodes: largest relative difference from the model "
        f"{done.difference:.1e}"
    )
    print(
        f"Next: {FORMATS[out.suffix].reader}({str(out)!r}) runs it in Python; docs/export.md describes inputs and output"
    )
