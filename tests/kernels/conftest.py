import pytest

from tests.kernels.machine import GXX, Machine, compile_libraries


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    if GXX is None:
        pytest.skip("there is no g++")
    return compile_libraries(tmp_path_factory.mktemp("libraries"))


@pytest.fixture
def machine(tmp_path, libraries, monkeypatch):
    return Machine(tmp_path, libraries, monkeypatch)


@pytest.fixture
def default_choice(monkeypatch):
    """GRIT_KERNELS as it is by default, in this process and its children, whatever the tests as a whole run with."""
    monkeypatch.delenv("GRIT_KERNELS", raising=False)
