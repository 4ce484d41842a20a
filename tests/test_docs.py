"""The documentation: every public name has an entry, every link leads somewhere, the package graph is that of the code."""

import inspect
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import typer
import yaml

import grit
from grit.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
PACKAGES = ["datasets", "batches", "encodings", "nn", "models", "learning", "recipe", "training", "testing", "kernels"]
ENTRY = re.compile(r"^::: (\S+)$", re.M)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def entries():
    """What the API pages document: the dotted path of each entry, and the object it stands for."""
    paths = [path for page in (DOCS / "api").glob("*.md") for path in ENTRY.findall(page.read_text(encoding="utf-8"))]
    return {path: pkgutil.resolve_name(path) for path in paths}


def public_names():
    """(dotted path, object) of what a package lists in ``__all__``, or else of what its modules define: classes,
    functions and tables.
    """
    for package in [grit, *(import_module(f"grit.{name}") for name in PACKAGES)]:
        if "__all__" in vars(package):
            yield from ((f"{package.__name__}.{name}", getattr(package, name)) for name in package.__all__)
            continue
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = import_module(found.name)
            assigned = set(re.findall(r"^([A-Z_]+)\b.* = ", inspect.getsource(module), re.M))
            for name, member in vars(module).items():
                is_table = name in assigned and isinstance(member, dict)
                is_own = getattr(member, "__module__", None) == found.name and callable(member)
                if (is_table or is_own) and not name.startswith("_"):
                    yield f"{found.name}.{name}", member


def test_every_public_name_has_an_entry_in_the_reference():
    documented = entries()
    modules = {path for path, found in documented.items() if isinstance(found, ModuleType)}

    def is_documented(path, found):
        name = path.rpartition(".")[2]
        return getattr(found, "__module__", None) in modules or any(
            each is found and entry.endswith(f".{name}") for entry, each in documented.items()
        )

    missing = [path for path, found in public_names() if not is_documented(path, found)]
    assert not missing, f"add '::: PATH', where PATH is the place of definition, to a page of docs/api for {missing}"


def test_the_overview_names_everything_in_grit():
    overview = (DOCS / "api" / "index.md").read_text(encoding="utf-8")
    missing = [name for name in grit.__all__ if f"[`grit.{name}`]" not in overview]
    assert not missing, f"add a row to docs/api/index.md: {missing}"


def prose(page):
    """The text of a page without its code."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]+`", "code", text)


def headings(page):
    """Anchors of a page, as the site makes them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.M)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("*.md")], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    for link in LINK.findall(prose(page)):
        if re.match(r"\w+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link} does not exist"
        assert not anchor or anchor in headings(target), f"{link}: no such heading"
        if DOCS in page.parents:
            assert DOCS in target.parents, f"{link} leads out of docs/, where the site cannot follow"


def test_every_page_is_in_the_navigation_once():
    def pages(tree):
        if isinstance(tree, str):
            return [tree]
        return [page for each in tree for page in pages(next(iter(each.values())))]

    nav = pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    assert sorted(nav) == sorted(page.relative_to(DOCS).as_posix() for page in PAGES)


def test_the_site_loads_nothing_from_elsewhere():
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert site["theme"]["font"] is False
    assert "//" not in str(site.get("extra_javascript", "")) + str(site.get("extra_css", ""))
    for page in PAGES:
        assert "```mermaid" not in page.read_text(encoding="utf-8"), (
            "the theme fetches mermaid from a CDN; draw with text"
        )


def test_files_named_in_the_documentation_exist():
    named = re.compile(r"`((?:src|tests|examples|benchmarks|scripts|docs)/[\w./-]+)`")
    pages = [*PAGES, ROOT / "README.md"]
    paths = [(page.name, path) for page in pages for path in named.findall(page.read_text(encoding="utf-8"))]
    missing = [(page, path) for page, path in paths if not (ROOT / path).exists()]
    assert not missing, f"these are named and do not exist: {missing}"


def commands_in(page):
    """The lines of a page's code blocks that call grit, without their comments."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    lines = [line for language, block in blocks if not language for line in block.splitlines()]
    lines = [line.partition("  ")[0].partition(" #")[0] for line in lines]
    return [line for line in lines if line.startswith("grit ")]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_the_documentation_exist(page):
    for line in commands_in(page):
        command, words = typer.main.get_command(app), line.split()[1:]
        while words and "commands" in vars(command):
            assert words[0] in command.commands, f"{line!r}: there is no such command"
            command = command.commands[words.pop(0)]
        known = {name for each in command.params for name in each.opts} | {"--help"}
        assert {word for word in words if re.match(r"--?[a-z]", word)} <= known, f"{line!r}: no such option"


def test_the_package_graph_is_that_of_the_code():
    script = [sys.executable, "scripts/package_graph.py", "--check"]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
