from functools import partial
from itertools import combinations

import pytest
import torch

from grit.kernels import dropout as module
from grit.kernels.dropout import dropout


def test_the_hash_is_the_published_one():
    # MurmurHash3's finaliser of 1, 2 and 3, from its definition in 32-bit arithmetic.
    def by_definition(h):
        h ^= h >> 16
        h = h * 0x85EBCA6B % 2**32
        h ^= h >> 13
        h = h * 0xC2B2AE35 % 2**32
        return h ^ (h >> 16)

    words = [0, 1, 2, 3, 2**31, 2**32 - 1, 123456789]
    as_int32 = torch.tensor([w - 2**32 if w >= 2**31 else w for w in words], dtype=torch.int32)
    assert (module._mix(as_int32).long() % 2**32).tolist() == [by_definition(w) for w in words]
    assert [module._mix_word(w) for w in words] == [by_definition(w) for w in words]


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


def test_numbers_beyond_32_bits_go_on_with_another_key():
    # What _hashes does for a later piece, on its first numbers only: the lower words are the same, the masks are not.
    seed = torch.tensor(11)
    first, second = (module._mix((seed ^ module._mix_word(upper)).to(torch.int32)) for upper in (0, 1))
    numbers = torch.arange(1000, dtype=torch.int32)
    assert not torch.equal(module._mix(numbers ^ first) > 0, module._mix(numbers ^ second) > 0)


def test_masks_of_other_seeds_and_of_numbers_beyond_32_bits_are_independent(monkeypatch):
    """Of every 2^32 elements the first 20,000, for neighbouring seeds: any two of these masks agree as by chance."""
    n, probability = 20_000, 0.3
    monkeypatch.setattr(module.torch, "arange", partial(shortened, torch.arange, n))
    threshold = module._signed(module.threshold(probability) ^ 0x80000000)
    masks = {}
    for seed in range(8):
        pieces = module._hashes(3 * 2**32 + n, torch.tensor(seed)).view(4, n) >= threshold
        masks |= {(seed, upper): pieces[upper] for upper in range(4)}
    expected = probability**2 + (1 - probability) ** 2
    for (name, first), (other, second) in combinations(masks.items(), 2):
        agreement = (first == second).double().mean().item()
        assert abs(agreement - expected) < 5 * (expected * (1 - expected) / n) ** 0.5, (name, other)


def shortened(arange, most, count, **options):
    return arange(min(count, most), **options)
