from functools import partial
from itertools import combinations

import pytest
import torch

from grit.kernels.dropout import dropout, hashes, threshold


def murmur(word):
    """MurmurHash3's finaliser, from its definition in 32-bit arithmetic."""
    word ^= word >> 16
    word = word * 0x85EBCA6B % 2**32
    word ^= word >> 13
    word = word * 0xC2B2AE35 % 2**32
    return word ^ (word >> 16)


def by_definition(number, seed):
    """The hash of an element number."""
    upper, lower = divmod(number, 2**32)
    return murmur(lower ^ murmur(seed ^ murmur(upper)))


@pytest.mark.parametrize("seed", [0, 1, 123456789, 2**31 - 2])
@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_what_is_dropped_is_what_the_definition_says(seed, probability):
    kept = dropout(torch.ones(50, 8), probability, torch.tensor(seed)) != 0
    wanted = [by_definition(number, seed) >= probability * 2**32 for number in range(400)]
    assert kept.flatten().tolist() == wanted


@pytest.mark.parametrize("seed", [0, 1, 123456789, 2**31 - 2])
def test_hashes_are_those_of_the_definition(seed, monkeypatch):
    """Of every 2^32 elements the first 1,000."""
    monkeypatch.setattr(torch, "arange", partial(shortened, torch.arange, 1000))
    got = hashes(3 * 2**32 + 1000, torch.tensor(seed)).long() + 2**31
    numbers = (upper * 2**32 + lower for upper in range(4) for lower in range(1000))
    assert got.tolist() == [by_definition(number, seed) for number in numbers]


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_shares_scale_and_independence(probability):
    n = 200_000
    out = dropout(torch.ones(n, dtype=torch.float64), probability, torch.tensor(3))
    kept = out != 0
    assert torch.unique(out[kept]).tolist() == [pytest.approx(1 / (1 - probability))]
    deviation = (probability * (1 - probability) / n) ** 0.5
    assert abs(kept.double().mean() - (1 - probability)) < 4 * deviation
    other = dropout(torch.ones(n, dtype=torch.float64), probability, torch.tensor(4)) != 0
    both = (1 - probability) ** 2
    for shifted in (other, torch.roll(kept, 1), torch.roll(kept, 8)):  # another seed, the next element, the next pair
        assert abs((kept & shifted).double().mean() - both) < 4 * (both * (1 - both) / n) ** 0.5


def test_none_and_all():
    values = torch.randn(5, 3)
    assert dropout(values, 0.0, torch.tensor(1)) is values
    assert dropout(values, 1.0, torch.tensor(1)).count_nonzero() == 0


def test_the_same_seed_drops_the_same():
    values = torch.randn(64, 8)
    assert torch.equal(dropout(values, 0.3, torch.tensor(7)), dropout(values, 0.3, torch.tensor(7)))
    assert not torch.equal(dropout(values, 0.3, torch.tensor(7)), dropout(values, 0.3, torch.tensor(8)))


def test_masks_of_other_seeds_and_of_numbers_beyond_32_bits_are_independent(monkeypatch):
    """Of every 2^32 elements the first 20,000, for neighbouring seeds: any two of these masks agree as by chance."""
    n, probability = 20_000, 0.3
    monkeypatch.setattr(torch, "arange", partial(shortened, torch.arange, n))
    masks = {}
    for seed in range(8):
        pieces = hashes(3 * 2**32 + n, torch.tensor(seed)).view(4, n).long() + 2**31 >= threshold(probability)
        masks |= {(seed, upper): pieces[upper] for upper in range(4)}
    expected = probability**2 + (1 - probability) ** 2
    for (name, first), (other, second) in combinations(masks.items(), 2):
        agreement = (first == second).double().mean().item()
        assert abs(agreement - expected) < 5 * (expected * (1 - expected) / n) ** 0.5, (name, other)


def shortened(arange, most, count, **options):
    return arange(min(count, most), **options)
