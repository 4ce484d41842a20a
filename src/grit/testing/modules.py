"""What every part of a model keeps, whatever it computes: its weights can be saved, and chance is under a seed's control."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from grit.testing.rules import Rules


def seeded(make: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    """A module whose weights depend on the seed; torch's random numbers go on as if nothing had been drawn."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def under_seed(seed: int, compute: Callable[[], Tensor]) -> Tensor:
    """What is computed with torch's random numbers at a seed, without gradients."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        return compute()


def check_module(rules: Rules, make: Callable[[], nn.Module], run: Callable[[nn.Module], Tensor]) -> None:
    """Raise unless a module keeps these rules.

    Args:
        rules: Of the entry.
        make: A new module with new random weights.
        run: What the module computes of fixed inputs.
    """
    module, same = seeded(make), seeded(make)
    for (name, value), (other, again) in zip(module.state_dict().items(), same.state_dict().items(), strict=True):
        rules.hold("one seed gives one set of weights", name == other and torch.equal(value, again), name)
    module.train()
    same.train()
    first, second = under_seed(1, lambda: run(module)), under_seed(1, lambda: run(same))
    rules.equal("in training, the same seed gives the same result", second, first)
    module.eval()
    whole = under_seed(1, lambda: run(module))
    rules.equal("in evaluation nothing is left to chance", under_seed(2, lambda: run(module)), whole)
    other_weights = seeded(make, seed=1)
    with rules.works("its weights can be saved and loaded"):
        other_weights.load_state_dict(module.state_dict())
    loaded = under_seed(1, lambda: run(other_weights.eval()))
    rules.equal("loaded weights give the same result: all that it learns is in its state_dict", loaded, whole)


def check_gradients(rules: Rules, module: nn.Module, loss: Tensor, unread: tuple[str, ...] = ()) -> None:
    """Raise unless the gradient of a loss reaches every parameter.

    Args:
        rules: Of the entry.
        module: Its parameters have no gradient yet.
        loss: A number.
        unread: Beginnings of the names of parameters that may be left out.
    """
    loss.backward()  # type: ignore[no-untyped-call]
    rule = "the gradient reaches every parameter"
    without = [name for name, value in module.named_parameters() if value.grad is None and not name.startswith(unread)]
    rules.hold(rule, not without, f"none reaches {', '.join(without)}")
    for name, value in module.named_parameters():
        if value.grad is not None:
            rules.finite(f"the gradient of {name} is finite", value.grad)
