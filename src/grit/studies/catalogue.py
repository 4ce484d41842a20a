"""The table of studies. A study's file is imported when it is run, because several need heavy packages."""

from importlib import import_module

from grit.studies.study import Study, Workbench


def _study(module: str, paper: str, summary: str) -> Study:
    def run(bench: Workbench) -> None:
        import_module(f"grit.studies.{module}").run(bench)

    return Study(summary, paper, run)


STUDIES: dict[str, Study] = {}
