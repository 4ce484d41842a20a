"""What surrounds the code: workflows, hooks, citation and changelog name things that exist."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read_yaml(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def make_targets():
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def test_there_are_workflows_for_tests_wheels_and_docs():
    assert {path.stem for path in WORKFLOWS} == {"tests", "wheels", "docs"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_make_targets_that_exist(path):
    jobs = read_yaml(path)["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    named = {target for command in commands for target in re.findall(r"\bmake ([a-z]+)", command)}
    assert named
    assert named <= make_targets()


def test_the_workflows_install_what_was_tested():
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        assert "index-url" not in text
        for line in re.findall(r"pip install .*", text):
            assert "-c constraints.txt" in line


def test_every_phony_target_is_there():
    declared = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert set(declared[1].split()) == make_targets()


def test_hooks_need_no_network():
    repos = read_yaml(ROOT / ".pre-commit-config.yaml")["repos"]
    assert [repo["repo"] for repo in repos] == ["local"]
    hooks = {hook["id"]: hook for hook in repos[0]["hooks"]}
    assert {"ruff-check", "ruff-format", "clang-format", "mypy", "lint-imports"} <= hooks.keys()
    assert {hook["language"] for hook in hooks.values()} == {"system"}


def test_the_citation_is_that_of_the_paper():
    paper = read_yaml(ROOT / "CITATION.cff")["preferred-citation"]
    names = [author["family-names"] for author in paper["authors"]]
    assert names == ["Ma", "Lin", "Lim", "Romero-Soriano", "Dokania", "Coates", "Torr", "Lim"]
    assert paper["title"] == "Graph Inductive Biases in Transformers without Message Passing"


def test_modules_of_the_changelog_are_where_it_says():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(grit[\w.]+)` \| (.+) \|$", text, re.M)
    assert rows
    for old, new in rows:
        places = re.findall(r"`([\w.]+)`", new)
        for place in places:
            assert find_spec(place), f"{place} does not exist"
        is_package_now = any(place.startswith(f"{old}.") for place in places)
        assert is_package_now or not _exists(old), f"{old} still exists"


def _exists(module):
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor does its package
        return False
