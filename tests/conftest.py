import pytest
import torch
from hypothesis import HealthCheck, settings

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
