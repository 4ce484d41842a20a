"""How the learning rate falls after the warm-up: the table `SCHEDULES`; and plateaus, at which it falls as well."""

from collections.abc import Callable, Sequence
from math import cos, pi


def _cosine(done: float) -> float:
    return 0.5 * (1 + cos(pi * done))


def _linear(done: float) -> float:
    return 1 - done


def _halving(done: float) -> float:
    return 0.5 ** int(6 * done + 1e-9)  # the small number: epoch 50 of 300 is the beginning of the second sixth


def _constant(done: float) -> float:
    return 1.0


def _steps(done: float) -> float:
    """A quarter at every 30 % of the way, as the baselines of PCQM4Mv2: after 30, 60 and 90 of 100 epochs."""
    return 0.25 ** int(done / 0.3 + 1e-9)  # 0.3 of 30 epochs is 9 epochs, and not a little more


# ``halving`` is in six steps of equal length, each with half the rate of the one before.
# The share of the epochs after the warm-up that is done, 0 to 1 -> the share of the peak.
SCHEDULES: dict[str, Callable[[float], float]] = {
    "cosine": _cosine,
    "linear": _linear,
    "constant": _constant,
    "steps": _steps,
    "halving": _halving,
}


def learning_rate(*, schedule: str, lr: float, epochs: int, warmup_epochs: int, epoch: int) -> float:
    """Learning rate throughout ``epoch``, counted from 0.

    Warm-up rises linearly and starts at a millionth of the peak, so that epoch 0 hardly learns, as the released schedule
    has it. Afterwards the schedule, from the peak ``lr`` to the end of the last epoch.
    """
    if epoch < warmup_epochs:
        return lr * max(1e-6, epoch / warmup_epochs)
    done = (epoch - warmup_epochs) / max(1, epochs - warmup_epochs)
    return lr * max(0.0, SCHEDULES[schedule](done))


def plateaus(costs: Sequence[float], patience: int) -> int:
    """How often validation has stopped improving: more than ``patience`` epochs in a row without a new best.

    As torch's ``ReduceLROnPlateau`` counts them: an improvement is one of more than a ten-thousandth, and after each plateau
    the count of epochs begins anew.

    Args:
        costs: The result of each epoch so far, lower being better.
        patience: Epochs without an improvement that are accepted.
    """
    best, waited, found = float("inf"), 0, 0
    for cost in costs:
        if cost < best - 1e-4 * abs(best) or best == float("inf"):
            best, waited = cost, 0
        else:
            waited += 1
        if waited > patience:
            found, waited = found + 1, 0
    return found
