"""What ``grit doctor`` prints."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version

import torch

from grit import kernels
from grit.datasets.pipeline.source_files import data_root
from grit.errors import GritError
from grit.memory import available_memory
from grit.nn.can_fuse import why_not_fused
from grit.nn.layer import GritLayer

PACKAGES = {
    "torch-geometric": "graphs",
    "rdkit": "molecules (extra mol)",
    "scikit-learn": "baselines and metrics",
    "matplotlib": "figures (extra report)",
}


def print_report() -> None:
    """One fact a line."""
    print(f"grit {_version('torch-grit')}, Python {platform.python_version()}, torch {torch.__version__}")
    for package, use in PACKAGES.items():
        print(f"{package}: {_version(package)} — {use}")
    free = available_memory(torch.device("cpu"))
    print(
        f"threads: {torch.get_num_threads()} of {os.cpu_count()} processors"
        + ("" if free is None else f"; {free / 2**30:.1f} GiB of memory free")
    )
    print(f"GPU: {torch.cuda.get_device_name() if torch.cuda.is_available() else 'none that torch can use'}")
    status = kernels.status()
    print(f"kernels: {status.active} (GRIT_KERNELS={status.choice}): {status.reason}")
    reason = why_not_fused([GritLayer(hidden_dim=8, num_heads=2)], torch.zeros(1, 8), torch.zeros(1, 8), torch.zeros(1))
    if reason is None:
        print("  a layer runs fused here; model.why_plain(batch) tells for a model of yours")
    else:
        print(f"  a layer runs plain here: {reason}")
    try:
        print(f"data: {data_root(None)}")
    except GritError as error:
        print(f"data: {error}")
    print("Next: grit demo, or grit datasets")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
