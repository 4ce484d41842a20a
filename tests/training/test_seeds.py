import pytest

from grit.training.seeds import SeedResults, p_value, summarise


def test_summary():
    row = summarise([1.0, 2.0, 3.0])
    assert row == SeedResults(2.0, 1.0, 3)
    assert summarise([5.0]) == SeedResults(5.0, 0.0, 1)


def test_the_stars_of_the_paper():
    """GRIT against the second-best row: six differences are significant, MNIST's is not (pooled one-tailed p)."""
    grit = {
        "zinc": (SeedResults(0.059, 0.002, 4), SeedResults(0.070, 0.004, 10), False, 1.2e-4),
        "cifar10": (SeedResults(76.468, 0.881, 4), SeedResults(72.838, 0.417, 10), True, 8e-8),
        "pattern": (SeedResults(87.196, 0.076, 4), SeedResults(86.850, 0.057, 10), True, 3.5e-7),
        "cluster": (SeedResults(80.026, 0.277, 4), SeedResults(79.232, 0.348, 10), True, 8.1e-4),
        "func": (SeedResults(0.6988, 0.0082, 4), SeedResults(0.6535, 0.0041, 4), True, 3.1e-5),
        "struct": (SeedResults(0.2460, 0.0012, 4), SeedResults(0.2500, 0.0012, 4), False, 1.6e-3),
    }
    for ours, theirs, higher, expected in grit.values():
        assert p_value(ours, theirs, higher_is_better=higher) == pytest.approx(expected, rel=0.15)
    mnist = p_value(SeedResults(98.108, 0.111, 4), SeedResults(98.173, 0.087, 10), higher_is_better=True)
    assert mnist > 0.05
