"""The paper's experiments as commands: the table `STUDIES`. Studies import the core, never the other way round."""

from grit.studies.catalogue import STUDIES
from grit.studies.results_table import ResultsTable
from grit.studies.study import BUDGETS, Study, Workbench

__all__ = ["BUDGETS", "STUDIES", "ResultsTable", "Study", "Workbench"]
