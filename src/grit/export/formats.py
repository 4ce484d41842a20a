"""The formats of exported files: the table `FORMATS`, by suffix."""

import json
import logging
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import torch
from torch import Tensor
from torch.export import ExportedProgram

from grit.errors import GritError
from grit.graphs.chunk import Array

METADATA = "grit.json"  # what a .pt2 file says about itself
OUTPUT = "prediction"

Run = Callable[[Mapping[str, Tensor]], Array]
Shapes = dict[str, dict[int, Any]]


class Format(ABC):
    """How a program is written to a file, and read again to try it.

    Attributes:
        reader: What opens the file in Python, for the user to know.
        packages: The packages that it needs.
    """

    reader: ClassVar[str]
    packages: ClassVar[tuple[str, ...]] = ()

    def check_installed(self) -> None:
        """Raise if a package is missing."""
        missing = [name for name in self.packages if find_spec(name) is None]
        if missing:
            raise GritError(f"this export needs {', '.join(missing)}: pip install 'torch-grit[export]'.")

    @abstractmethod
    def write(self, program: ExportedProgram, shapes: Shapes, about: Mapping[str, Any], file: BinaryIO) -> None:
        """Write a program.

        Args:
            program: The program, all inputs by name; it must not be used again.
            shapes: Its ``dynamic_shapes``.
            about: What the file says about itself.
            file: Where to, open for writing.
        """

    @abstractmethod
    def open(self, path: Path) -> Run:
        """The program of a file as a function of its inputs by name."""


class Pt2(Format):
    """The archive of `torch.export.save`."""

    reader: ClassVar[str] = "torch.export.load"

    def write(self, program: ExportedProgram, shapes: Shapes, about: Mapping[str, Any], file: BinaryIO) -> None:
        """Write, with ``grit.json`` inside."""
        torch.export.save(program, file, extra_files={METADATA: json.dumps(about, indent=1)})

    def open(self, path: Path) -> Run:
        """Load with PyTorch."""
        with path.open("rb") as file:
            module = torch.export.load(file).module()

        def run(inputs: Mapping[str, Tensor]) -> Array:
            with torch.no_grad():
                outputs: Array = module(**inputs).numpy()
            return outputs

        return run


class Onnx(Format):
    """ONNX, for ONNX Runtime and others."""

    reader: ClassVar[str] = "onnxruntime.InferenceSession"
    packages: ClassVar[tuple[str, ...]] = ("onnx", "onnxscript", "onnxruntime")

    def write(self, program: ExportedProgram, shapes: Shapes, about: Mapping[str, Any], file: BinaryIO) -> None:
        """Translate and write, with metadata properties: text as it is, anything else as JSON."""
        with _quiet():
            translated = torch.onnx.export(
                program,
                dynamo=True,
                output_names=[OUTPUT],
                dynamic_shapes=shapes,
                custom_translation_table={torch.ops.aten.index_add.default: _index_add},
                verbose=False,
            )
        assert translated is not None
        for node in translated.model.graph:
            node.metadata_props.clear()  # the exporter's notes on where it came from
        if about["level"] == "graph":
            shape = translated.model.graph.outputs[0].shape
            assert shape is not None
            shape[0] = "num_graphs"  # the exporter made up a name
        properties = {name: each if isinstance(each, str) else json.dumps(each) for name, each in about.items()}
        translated.model.metadata_props.update(properties)
        file.write(translated.model_proto.SerializeToString())

    def open(self, path: Path) -> Run:
        """Load with ONNX Runtime."""
        from onnxruntime import InferenceSession

        session = InferenceSession(path, providers=["CPUExecutionProvider"])

        def run(inputs: Mapping[str, Tensor]) -> Array:
            outputs: Array = session.run([OUTPUT], {name: tensor.numpy() for name, tensor in inputs.items()})[0]
            return outputs

        return run


FORMATS: dict[str, Format] = {".pt2": Pt2(), ".onnx": Onnx()}


def _index_add(self: Any, dim: int, index: Any, source: Any) -> Any:
    """``index_add`` in ONNX.

    The exporter's own translation is ScatterND, which ONNX Runtime runs in several threads without care for rows that
    have the same index: sums come out wrong now and then. ScatterElements is safe.
    """
    from onnxscript import opset18 as op

    axes = [axis for axis in range(len(source.shape)) if axis != dim]
    spread = op.Expand(
        op.Unsqueeze(index, axes), op.Shape(source)
    )  # an index for each number, as ScatterElements wants
    return op.ScatterElements(self, spread, source, axis=dim, reduction="add")


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what the exporter says about packages it could use and about its own deprecations."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
