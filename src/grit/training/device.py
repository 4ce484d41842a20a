"""Whether a device is there."""

import torch

from grit.errors import GritError


def check_device(device: str) -> None:
    """Raise unless tensors can be put there; ``auto`` is always fine."""
    if device == "auto":
        return
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise GritError(f"cannot use the device {device!r}: {reason}. Try --device cpu.") from None
