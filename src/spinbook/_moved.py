"""Where modules are that this package had: a module that moved can be imported by its old name for one release."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType

__all__ = ["MOVED", "Finder", "new_name"]

MOVED = {
    "comparison": "experiments.comparison",
    "datasets": "experiments.datasets",
    "digits": "experiments.datasets.digits",
    "entropy_production.experiments": "experiments.entropy_production",
    "neqnn": "chapters.nonequilibrium_dynamics.neqnn",
    "plot": "chapters",
    "plot.calibration": "chapters.nonequilibrium_dynamics.calibration",
    "plot.comparison": "chapters.comparison.figures",
    "plot.comparison_depths": "chapters.comparison.depths",
    "plot.nonequilibrium_dynamics": "chapters.nonequilibrium_dynamics.figures",
    "plot.spin_transformers": "chapters.spin_transformers.figures",
    "plot.transient": "chapters.nonequilibrium_dynamics.transient",
    "printed": "chapters.spin_transformers.printed",
    "sweep.__main__": "experiments.__main__",
    "sweep.published": "experiments.published",
    "vector.calibration": "experiments.vector.calibration",
    "vector.fidelity": "experiments.vector.fidelity",
    "vector.one_step": "experiments.vector.one_step",
}
"""Names within this package, and the full names that these modules have now; those of their parts follow."""
_PACKAGE = __name__.partition(".")[0]


def new_name(name: str) -> str | None:
    """What a module is called now that had this full name; None if none had it.

    >>> new_name("spinbook.comparison.tasks")
    'experiments.comparison.tasks'
    """
    package, _, old = name.partition(".")
    known = [one for one in MOVED if package == _PACKAGE and f"{old}.".startswith(f"{one}.")]
    longest = max(known, key=len, default=None)
    return None if longest is None else MOVED[longest] + old.removeprefix(longest)


class Finder(MetaPathFinder, InspectLoader):
    """Finds a module under its old name: it is the same object as under the new one, and a warning says where it is."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module under its new name, loaded by this finder; None for a name that has not moved."""
        name = new_name(fullname)
        found = None if name is None else importlib.util.find_spec(name)
        if found is None:
            return None
        return ModuleSpec(fullname, self, is_package=found.submodule_search_locations is not None)

    def exec_module(self, module: ModuleType) -> None:
        """Put the module of the new name in the place of the old one."""
        sys.modules[module.__name__] = importlib.import_module(_warned(module.__name__))

    def get_code(self, fullname: str) -> CodeType | None:
        """The code of a command, for ``python -m``."""
        name = _warned(fullname)
        loader = getattr(importlib.util.find_spec(name), "loader", None)
        return loader.get_code(name) if isinstance(loader, InspectLoader) else None

    def get_source(self, fullname: str) -> None:
        """Nobody reads a module's source under its old name."""


def _warned(old: str) -> str:
    new = str(new_name(old))
    message = f"{old} is {new} now; the old name goes with the next release"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
    return new
