"""Writing a figure to the file that ``-o`` names."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

from grit.errors import GritError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".png", ".svg", ".pdf")


def check_picture(out: Path) -> None:
    """Raise unless a picture can be written there, before anything is computed."""
    if out.suffix.lower() not in PICTURES:
        raise GritError(f"cannot write {str(out)!r}: its ending must be one of {', '.join(PICTURES)}. Change -o.")
    if not out.parent.is_dir():
        raise GritError(f"cannot write {str(out)!r}: there is no folder {str(out.parent)!r}. Make it, or change -o.")


def save(figure: "Figure", out: Path) -> None:
    """Write a figure in the form that the ending says."""
    content = io.BytesIO()
    form = out.suffix.lower()[1:]
    # Without a date the same picture is the same file.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    figure.savefig(content, format=form, dpi=200, bbox_inches="tight", metadata=metadata)
    try:
        out.write_bytes(content.getvalue())
    except OSError as error:
        raise GritError(f"cannot write {str(out)!r}: {error.strerror}.") from None
