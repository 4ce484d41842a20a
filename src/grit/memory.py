"""Memory: how much there is, an error before it runs out, and keeping what was freed.

Pair tensors are large and live for one step. By default glibc hands such memory back to the system at once, and every step
pays for fresh pages.
"""

import ctypes
import sys
from pathlib import Path

import torch

from grit.errors import GritError

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # of glibc's malloc.h


def keep_freed_memory() -> bool:
    """Tell the allocator of this process to keep what is freed, for the next step. True where that could be done (glibc).

    Training and the commands do this by themselves; it is process-wide, so importing the library does not.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        libc = ctypes.CDLL("libc.so.6")
        return bool(libc.mallopt(_M_MMAP_MAX, 0) and libc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1))
    except (OSError, AttributeError):
        return False


def available_memory(device: torch.device) -> int | None:
    """Bytes that can still be allocated there; None where that is not known."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type != "cpu":
        return None
    free = proc_bytes("/proc/meminfo", "MemAvailable")
    limit, used = (_number(Path("/sys/fs/cgroup") / name) for name in ("memory.max", "memory.current"))
    if limit is not None and used is not None:
        free = limit - used if free is None else min(free, limit - used)
    return free


def check_fits(num_pairs: int, bytes_per_pair: int, device: torch.device, what: str) -> None:
    """Raise if ``what`` cannot possibly fit; cheap enough for every step, because small amounts are not looked into."""
    needed = num_pairs * bytes_per_pair
    if needed < 2**28:
        return
    free = available_memory(device)
    if free is None or needed <= free:
        return
    raise GritError(
        f"{what} needs at least {needed / 2**30:.1f} GiB for {num_pairs:,} node pairs, and {free / 2**30:.1f} GiB are free. "
        "Use smaller batches (train.batch_size), a limit on the pairs of a batch (train.max_pairs=200000), or sparse "
        "attention (model.pairs=edges or khop-2); a narrower model or fewer layers need less as well."
    )


def proc_bytes(file: str, name: str) -> int | None:
    """An entry in kilobytes of a file such as ``/proc/meminfo``, in bytes; None where the system does not tell."""
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # absent, or "max"
        return None
