"""What the processor can do. Standard library only: the build hook of the wheel uses this file too."""

import platform
from pathlib import Path

_AVX2 = ("avx", "avx2", "fma", "bmi1", "bmi2", "f16c", "movbe", "abm", "xsave")
_AVX512 = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")

# The libraries within a wheel, best first: the architecture that each is compiled for, and the flags of /proc/cpuinfo that
# it needs.
LEVELS = {"x86-64-v4": (*_AVX2, *_AVX512), "x86-64-v3": _AVX2}


def levels() -> list[str]:
    """Those of `LEVELS` that this processor can run, best first."""
    each = [set(line.partition(":")[2].split()) for line in cpuinfo() if line.startswith("flags")]
    flags = set.intersection(*each) if each else set()  # cores may differ
    return [level for level, needed in LEVELS.items() if flags.issuperset(needed)]


def describe() -> str:
    """What ``-march=native`` depends on."""
    lines = [line for line in cpuinfo() if line.startswith(("flags", "Features", "model name"))]
    return "\n".join([platform.machine(), *(lines or [platform.processor()])])


def cpuinfo() -> list[str]:
    """The distinct lines of ``/proc/cpuinfo``; none where there is no such file."""
    try:
        return list(dict.fromkeys(Path("/proc/cpuinfo").read_text().splitlines()))
    except OSError:
        return []
