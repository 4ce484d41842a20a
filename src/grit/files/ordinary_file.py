"""Reading files that others name: an ordinary file, not a pipe or a device, whose end might never come."""

import errno
import os
import stat
from pathlib import Path


def check_ordinary(path: Path) -> Path:
    """The path; an OSError if there is nothing, or something else than a file."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "it is not a file", str(path))
    return path
