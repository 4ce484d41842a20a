import pytest
import torch
from hypothesis import HealthCheck, settings

import grit
from grit import kernels

settings.register_profile(
    "default", max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("default")
torch.set_num_threads(1)


@pytest.fixture(scope="module", params=["plain", "fused"])
def each_form(request):
    """The tests of a module that asks for it run with both forms of the kernels."""
    if request.param == "fused" and kernels.status().active != "fused":
        pytest.skip(kernels.status().reason)
    with kernels.use(request.param):
        yield request.param


@pytest.fixture
def forget_plugins():
    """A call makes all tables what they were when the test began; so does the end of the test.

    A plugin file is imported once per process, so tests write or copy theirs to ``tmp_path``.
    """
    tables = [getattr(grit, name) for name in grit.__all__ if name.isupper()]
    kept = [dict(table) for table in tables]

    def forget():
        for table, entries in zip(tables, kept, strict=True):
            table.clear()
            table.update(entries)

    yield forget
    forget()
