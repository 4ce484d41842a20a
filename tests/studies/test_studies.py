"""The contract that every entry of STUDIES keeps."""

import inspect
from importlib import import_module

import pytest

from grit.studies import STUDIES, Workbench


@pytest.mark.parametrize("name", sorted(STUDIES))
class TestContract:
    def test_has_a_line_for_the_list(self, name):
        study = STUDIES[name]
        assert study.paper
        assert study.summary
        assert "\n" not in study.summary + study.paper
        assert not study.summary.endswith(".")

    def test_runs_the_module_of_its_name(self, name, monkeypatch, tmp_path):
        module = import_module(f"grit.studies.{name.replace('-', '_')}")
        assert inspect.getdoc(module.run)
        assert list(inspect.signature(module.run).parameters) == ["bench"]
        assert inspect.getdoc(module)
        given = []
        monkeypatch.setattr(module, "run", given.append)
        bench = Workbench(tmp_path)
        STUDIES[name].run(bench)
        assert given == [bench]
