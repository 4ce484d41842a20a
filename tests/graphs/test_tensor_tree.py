from dataclasses import FrozenInstanceError, dataclass

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from grit.graphs.tensor_tree import TensorTree, has_values


@dataclass(frozen=True, eq=False)
class Leaf(TensorTree):
    numbers: Tensor
    counts: Tensor


@dataclass(frozen=True, eq=False)
class Tree(TensorTree):
    leaf: Leaf
    values: Tensor
    absent: Tensor | None = None
    name: str = "tree"


def tree():
    leaf = Leaf(numbers=torch.tensor([1.5, -2.0]), counts=torch.tensor([1, 2, 3]))
    return Tree(leaf=leaf, values=torch.tensor([[0.25]]), name="oak")


def test_every_tensor_is_mapped_and_nothing_else():
    before = tree()
    after = before.map_tensors(lambda t: t + 1)
    assert isinstance(after, Tree)
    assert isinstance(after.leaf, Leaf)
    assert after.leaf.numbers.tolist() == [2.5, -1.0]
    assert after.leaf.counts.tolist() == [2, 3, 4]
    assert after.values.tolist() == [[1.25]]
    assert after.absent is None
    assert after.name == "oak"
    assert before.leaf.numbers.tolist() == [1.5, -2.0]


def test_what_does_not_change_is_the_same_object():
    before = tree()
    assert before.map_tensors(lambda t: t) is before
    after = before.map_tensors(lambda t: t * 2 if t.dim() == 2 else t)
    assert after is not before
    assert after.leaf is before.leaf
    assert after.values.tolist() == [[0.5]]
    inner = before.map_tensors(lambda t: t if t.is_floating_point() else t * 2)
    assert inner.values is before.values
    assert inner.leaf.numbers is before.leaf.numbers
    assert inner.leaf.counts.tolist() == [2, 4, 6]


def test_type_of_floating_point_tensors():
    double = tree().to(torch.float64)
    assert double.values.dtype == double.leaf.numbers.dtype == torch.float64
    assert double.leaf.counts.dtype == torch.int64
    assert double.leaf.numbers.tolist() == [1.5, -2.0]
    assert double.to(torch.float64) is double
    half = double.to(torch.bfloat16)
    assert half.values.dtype == half.leaf.numbers.dtype == torch.bfloat16
    with pytest.raises(TypeError, match="takes a floating-point type, got torch.int64"):
        double.to(torch.int64)


@pytest.mark.parametrize("device", ["meta", torch.device("meta")])
def test_device_of_every_tensor(device):
    moved = tree().to(device)
    assert {moved.values.device.type, moved.leaf.numbers.device.type, moved.leaf.counts.device.type} == {"meta"}
    assert moved.leaf.counts.dtype == torch.int64
    assert moved.absent is None


def test_non_blocking_is_passed_on(monkeypatch):
    asked = []
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, *args, **kwargs: asked.append((args, kwargs)) or tensor)
    tree().to("cpu", non_blocking=True)
    assert asked == [(("cpu",), {"non_blocking": True})] * 3
    asked.clear()
    tree().to("cpu")
    assert asked == [(("cpu",), {"non_blocking": False})] * 3


def test_pins_every_tensor(monkeypatch):
    pinned = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: pinned.append(tensor) or tensor.clone())
    before = tree()
    after = before.pin_memory()
    assert {id(tensor) for tensor in pinned} == {id(before.values), id(before.leaf.numbers), id(before.leaf.counts)}
    assert after.leaf.counts is not before.leaf.counts
    assert torch.equal(after.leaf.counts, before.leaf.counts)


def test_checks_run_again_on_the_changed_record():
    @dataclass(frozen=True, eq=False)
    class Short(TensorTree):
        values: Tensor

        def __post_init__(self):
            if self.values.numel() > 2:
                raise ValueError("too long")

    short = Short(torch.zeros(2))
    with pytest.raises(ValueError, match="too long"):
        short.map_tensors(lambda t: t.repeat(2))
    with pytest.raises(FrozenInstanceError):
        short.values = torch.zeros(1)


def test_a_record_is_a_pytree():
    before = tree()
    leaves, spec = pytree.tree_flatten(before)
    assert [tuple(each.shape) if isinstance(each, Tensor) else each for each in leaves] == [(2,), (3,), (1, 1), "oak"]
    again = pytree.tree_unflatten(leaves, spec)
    assert isinstance(again, Tree)
    assert isinstance(again.leaf, Leaf)
    assert again.leaf.counts is before.leaf.counts
    assert again.absent is None
    paths = [pytree.keystr(path) for path, _ in pytree.tree_flatten_with_path(before)[0]]
    assert paths == [".leaf.numbers", ".leaf.counts", ".values", ".name"]


def test_a_pytree_may_hold_anything():
    shapes = pytree.tree_map_only(Tensor, lambda t: t.shape, tree())
    assert shapes.leaf.counts == (3,)
    with pytest.raises(FrozenInstanceError):
        shapes.name = "elm"


def test_fake_tensors_have_no_values():
    assert has_values(torch.zeros(1))
    assert not has_values(torch.zeros(1, device="meta"))
    with FakeTensorMode():
        assert not has_values(torch.zeros(1))
