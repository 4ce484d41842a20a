"""The OpenMP runtime: the compiled kernels use the one that torch uses.

torch brings one: ``libgomp.so.1``, or a name such as ``libgomp-a34b3233.so.1``, or in conda ``libiomp5.so``. A second one in
the same process would start threads of its own, and they would compete for the processors. So the kernels are not linked to
any. Before they are loaded, torch's is found and made visible, and they take its functions.
"""

import ctypes
from pathlib import Path

from grit.kernels.compiler import KernelsUnavailable

SYSTEM = "libgomp.so.1"


class _SymbolInfo(ctypes.Structure):
    """``Dl_info`` of dlfcn.h."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def share_openmp() -> str:
    """Make the functions of torch's OpenMP runtime visible to libraries that are loaded from now on; its file.

    Where torch uses none, the system's.
    """
    runtime = _runtime_of_torch() or SYSTEM
    try:
        ctypes.CDLL(runtime, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise KernelsUnavailable(f"there is no OpenMP runtime ({error}); install libgomp") from None
    return runtime


def _runtime_of_torch() -> str | None:
    import torch

    try:
        torch_cpu = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))  # loaded already
        function = torch_cpu.omp_get_max_threads  # of the library itself, or of those that it was linked to
        find = ctypes.CDLL(None).dladdr
    except (OSError, AttributeError):
        return None
    info = _SymbolInfo()
    found = find(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(info))
    return info.file.decode() if found and info.file else None
