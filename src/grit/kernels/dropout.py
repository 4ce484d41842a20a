"""Dropout whose mask is a function of a seed and of the number of an element, and of nothing else.

The plain and the fused form of an operation, and its forward and backward pass, therefore drop the same elements, on any
device and for any number of threads. Element number i is dropped if

    hash(lower word of i  xor  hash(seed xor hash(upper word of i)))  <  p * 2^32

where hash is the finaliser of MurmurHash3 on 32-bit words.
"""

import torch
from torch import Tensor


def draw_seed(*shape: int) -> Tensor:
    """New seeds from torch's generator, one if no shape is given, int64 in 0 .. 2^31 - 1; drawn as if one by one."""
    return torch.randint(2**31 - 1, shape, device="cpu")


def threshold(probability: float) -> int:
    """The hash below which an element is dropped, as an unsigned 32-bit number."""
    return min(round(probability * 2**32), 2**32 - 1)


def dropout(values: Tensor, probability: float, seed: Tensor | None = None) -> Tensor:
    """Drop elements of a tensor, numbered in row-major order, and scale the others by 1 / (1 - probability).

    Without a seed one is drawn, unless nothing is dropped.
    """
    if probability == 0:
        return values
    if seed is None:
        seed = draw_seed()
    kept = hashes(values.numel(), seed.to(values.device)) >= _signed(threshold(probability) ^ 0x80000000)
    scale = 0.0 if probability == 1 else 1 / (1 - probability)
    return values * (kept.view(values.shape) * torch.tensor(scale, dtype=values.dtype, device=values.device))


def hashes(count: int, seed: Tensor) -> Tensor:
    """The hash of every element number, (count,) int32, its first bit flipped so that signed order is unsigned order."""
    pieces = []
    for upper in range((count - 1 >> 32) + 1):
        numbers = torch.arange(min(count - (upper << 32), 1 << 32), device=seed.device)
        key = _mix((seed ^ _mix_word(upper)).to(torch.int32))
        pieces.append(_mix(numbers.to(torch.int32) ^ key) ^ _signed(0x80000000))
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces)


def _mix(word: Tensor) -> Tensor:
    """The hash, in int32 arithmetic that wraps around; a shift to the right must not bring in copies of the sign."""
    word = word ^ ((word >> 16) & 0xFFFF)
    word = word * _signed(0x85EBCA6B)
    word = word ^ ((word >> 13) & 0x7FFFF)
    word = word * _signed(0xC2B2AE35)
    return word ^ ((word >> 16) & 0xFFFF)


def _mix_word(word: int) -> int:
    """The hash of one number."""
    word ^= word >> 16
    word = word * 0x85EBCA6B & 0xFFFFFFFF
    word ^= word >> 13
    word = word * 0xC2B2AE35 & 0xFFFFFFFF
    return word ^ word >> 16


def _signed(word: int) -> int:
    return word - (1 << 32) if word >= 1 << 31 else word
