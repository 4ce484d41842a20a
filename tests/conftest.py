import torch
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default", max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("default")
torch.set_num_threads(1)
