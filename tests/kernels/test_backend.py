import pytest

from grit import kernels
from grit.errors import GritError


def test_use_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv("GRIT_KERNELS", "auto")
    with kernels.use("plain"):
        assert kernels.status() == kernels.Status("plain", "plain", "asked for")
        with kernels.use("auto"):
            assert kernels.status().choice == "auto"
        assert kernels.status().choice == "plain"
    assert kernels.status().choice == "auto"


def test_unknown_choice():
    with pytest.raises(GritError, match="auto, fused, plain, got 'fast'"), kernels.use("fast"):
        pass
