"""The build hook: puts compiled kernels into the wheel, so that people without a compiler get the speed.

One library for each of `grit.kernels.processor.LEVELS`; the processor decides at run time. Without a suitable compiler the wheel
is a pure one, and the kernels are compiled on first use. Editable installs compile nothing.
"""

import importlib.util
import platform
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelHook(BuildHookInterface[Any]):
    """Compile the kernels for x86-64 on Linux."""

    folder: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tell the builder what to include under which name."""
        if version == "editable" or sys.platform != "linux" or platform.machine() != "x86_64":
            return
        kernels = Path(self.root, "src", "grit", "kernels")
        compiler, processor = _module(kernels / "compiler.py"), _module(kernels / "processor.py")
        self.folder = Path(tempfile.mkdtemp(prefix="grit-wheel-"))
        libraries = []
        try:
            for level in processor.LEVELS:
                library = self.folder / f"grit-{level}.so"
                self.app.display_info(f"compiling the kernels for {level}")
                flags = [f"-march={level}", "-Wl,-s"]
                compiler.compile_library(compiler.compiler(), flags, kernels / "cpp" / "library.cpp", library)
                if compiler.needs_its_own_openmp(library):
                    raise compiler.KernelsUnavailable(
                        "only g++ can make a library that uses torch's OpenMP; set CXX=g++"
                    )
                library.chmod(0o755)
                libraries.append(library)
        except compiler.KernelsUnavailable as problem:
            self.app.display_warning(f"a wheel without compiled kernels: {problem}")
            return
        build_data["force_include"] |= {str(file): f"grit/kernels/lib/{file.name}" for file in libraries}
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled; the wheel has it."""
        if self.folder is not None:
            shutil.rmtree(self.folder)


def _module(file: Path) -> ModuleType:
    """A file of the package without the package, which needs torch."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
