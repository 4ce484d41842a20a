"""The contract that every entry of STUDIES keeps."""

import errno
import inspect
from importlib import import_module
from types import SimpleNamespace

import pytest

from grit.errors import GritError
from grit.studies import STUDIES, Workbench


@pytest.mark.parametrize("name", sorted(STUDIES))
class TestContract:
    def test_has_a_line_for_the_list(self, name):
        study = STUDIES[name]
        assert study.paper
        assert study.summary
        assert "\n" not in study.summary + study.paper
        assert not study.summary.endswith(".")

    def test_runs_a_module_of_its_own(self, name, monkeypatch, tmp_path):
        given, imported = [], []

        def without_work(path):
            module = import_module(path)
            imported.append(module)
            return SimpleNamespace(run=given.append)

        monkeypatch.setattr("grit.studies.catalogue.import_module", without_work)
        bench = Workbench(tmp_path)
        STUDIES[name].run(bench)
        assert given == [bench]
        (module,) = imported
        assert inspect.getdoc(module)
        assert inspect.getdoc(module.run)
        assert list(inspect.signature(module.run).parameters) == ["bench"]


def test_a_figure_is_there_whole_or_not_at_all(tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    class OnAFullDisk(Figure):
        def savefig(self, *arguments, **options):
            super().savefig(*arguments, **options)
            raise OSError(errno.ENOSPC, "No space left on device")

    bench = Workbench(tmp_path)
    bench.figure("maps", Figure())
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert before["maps.png"].startswith(b"\x89PNG")
    assert b"<svg" in before["maps.svg"]
    figure = OnAFullDisk(figsize=(1, 1))
    with pytest.raises(GritError, match=r"cannot write .*maps.svg': .*No space left"):
        bench.figure("maps", figure)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    assert bench.made == [tmp_path / "maps.svg", tmp_path / "maps.png"]
