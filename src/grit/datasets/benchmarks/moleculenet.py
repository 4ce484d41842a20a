"""Tables of molecules that are often tried first: ESOL, BBBP and Tox21 of MoleculeNet (Wu et al. 2018), and the gap of QM9."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from grit.datasets.benchmarks.benchmark import Benchmark, BuildOptions, BuildPlan, Published, Source, regression
from grit.datasets.molecules.smiles import ogb_graph
from grit.datasets.own.molecule_tables import molecule_schema
from grit.datasets.own.task_inference import Targets
from grit.datasets.pipeline.featurise_rows import Featurise, MoleculeRow, molecule_pieces
from grit.datasets.pipeline.source_files import SourceFile
from grit.datasets.pipeline.splits import random_split, scaffold_split
from grit.datasets.pipeline.write_store import Collected
from grit.datasets.tables.text_table import TextTable
from grit.graphs.chunk import Array
from grit.graphs.schema import TaskSpec

_ADDRESS = "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets/"


def _read(
    folder: Path,
    options: BuildOptions,
    *,
    file: str,
    smiles: str,
    columns: tuple[str, ...],
    task: TaskSpec,
    scaffold: bool,
) -> BuildPlan:
    """Rows that cannot be read are listed in the store, as with your own tables."""
    targets = Targets(task.model_copy(update={"targets": columns}), "as published")
    table = TextTable(folder / file, [smiles, *columns])

    def rows() -> Iterator[MoleculeRow]:
        for row in table.rows():
            if options.limit is not None and row.number >= options.limit:
                return
            y, reason = ((), row.reason) if row.reason else targets.parse(row.fields[name] for name in columns)
            yield MoleculeRow(row.number, row.fields[smiles], y, reason, row.line)

    def choose(found: Collected) -> dict[str, Array]:
        return scaffold_split(found.scaffolds) if scaffold else random_split(found.count, options.seed or 0)

    featurise = Featurise(graph=ogb_graph, with_scaffolds=scaffold)
    return BuildPlan(None, molecule_pieces(rows(), featurise, options.num_processes), choose)


def _table(
    *,
    name: str,
    title: str,
    task: TaskSpec,
    published: Published,
    files: dict[str, tuple[SourceFile, str, tuple[str, ...]]],
    scaffold: bool,
) -> Benchmark:
    """A benchmark that is one table; ``files`` gives for each source its file, SMILES column and target columns."""
    sources = tuple(
        Source(
            source,
            (file,),
            partial(_read, file=file.name, smiles=smiles, columns=columns, task=task, scaffold=scaffold),
        )
        for source, (file, smiles, columns) in files.items()
    )
    return Benchmark(
        name=name,
        title=title,
        schema=molecule_schema(task),
        task=task,
        published=published,
        sources=sources,
        featuriser="ogb",
    )


_SOLUBILITY = "measured log solubility in mols per litre"
_TOX21 = (
    "NR-AR",
    "NR-AR-LBD",
    "NR-AhR",
    "NR-Aromatase",
    "NR-ER",
    "NR-ER-LBD",
    "NR-PPAR-gamma",
    "SR-ARE",
    "SR-ATAD5",
    "SR-HSE",
    "SR-MMP",
    "SR-p53",
)

ESOL = _table(
    name="esol",
    title="ESOL, 1,128 molecules: measured solubility in water",
    task=TaskSpec(kind="regression", targets=(_SOLUBILITY,), loss="l1", metric="rmse", standardise=True),
    published=Published(graphs=1_128, nodes=13.3, edges=27.4),
    files={
        "official": (SourceFile("delaney-processed.csv", _ADDRESS + "delaney-processed.csv"), "smiles", (_SOLUBILITY,)),
        "table": (SourceFile("esol.csv"), "smiles", (_SOLUBILITY,)),
    },
    scaffold=False,
)

BBBP = _table(
    name="bbbp",
    title="BBBP, 2,039 molecules: do they pass the blood-brain barrier",
    task=TaskSpec(kind="binary", targets=("p_np",), classes=("0", "1"), loss="cross_entropy", metric="auroc"),
    published=Published(graphs=2_039, nodes=24.1, edges=51.9),
    files={
        "official": (SourceFile("BBBP.csv", _ADDRESS + "BBBP.csv"), "smiles", ("p_np",)),
        "table": (SourceFile("bbbp.csv"), "smiles", ("p_np",)),
    },
    scaffold=True,
)

TOX21 = _table(
    name="tox21",
    title="Tox21, 7,831 molecules: twelve toxicities, some unknown",
    task=TaskSpec(kind="multilabel", targets=_TOX21, loss="cross_entropy", metric="auroc"),
    published=Published(graphs=7_831, nodes=18.6, edges=38.6),
    files={
        "official": (SourceFile("tox21.csv.gz", _ADDRESS + "tox21.csv.gz"), "smiles", _TOX21),
        "table": (SourceFile("tox21.csv"), "smiles", _TOX21),
    },
    scaffold=False,
)

QM9_GAP = _table(
    name="qm9-gap",
    title="QM9, 130,831 small molecules: HOMO-LUMO gap (eV from the table here, hartree from the official file)",
    task=regression("gap", standardise=True),
    published=Published(graphs=130_831, nodes=8.8, edges=18.8),
    files={
        "official": (SourceFile("qm9.csv", _ADDRESS + "qm9.csv"), "smiles", ("gap",)),
        "table": (SourceFile("qm9_gap.csv.gz"), "SMILES", ("gap_eV",)),
    },
    scaffold=False,
)
