"""Where things are that this package had: what moved can be imported by its old name for one release."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

__all__ = ["GONE", "MOVED", "Finder", "explain", "new_name"]

MOVED = {
    "adaptive_tap.DigitNetwork": "experiments.digit_network.DigitNetwork",
    "adaptive_tap.network": "experiments.digit_network",
    "comparison": "experiments.comparison",
    "datasets": "experiments.datasets",
    "digits": "experiments.datasets.digits",
    "entropy_production.MemoryModule": "experiments.memory.MemoryModule",
    "entropy_production.MemoryStack": "experiments.memory.MemoryStack",
    "entropy_production.State": "experiments.memory.State",
    "entropy_production.causal": "experiments.memory.causal",
    "entropy_production.experiments": "experiments.entropy_production",
    "entropy_production.memory": "experiments.memory",
    "ising.sherrington_kirkpatrick.published_starts": "chapters.kinetic_ising.published.published_starts",
    "ising.sherrington_kirkpatrick.published_system": "chapters.kinetic_ising.published.published_system",
    "lens.Explained": "experiments.lens_record.echoes.Explained",
    "lens.antisymmetric_share": "experiments.lens_record.jacobians.antisymmetric_share",
    "lens.contributions": "experiments.lens_record.echoes.contributions",
    "lens.echo": "experiments.lens_record.echoes.echo",
    "lens.explained": "experiments.lens_record.echoes.explained",
    "lens.growth": "experiments.lens_record.jacobians.growth",
    "neqnn": "chapters.nonequilibrium_dynamics.neqnn",
    "plot": "chapters",
    "plot.attention_dynamics": "chapters.attention_dynamics.figures",
    "plot.calibration": "chapters.nonequilibrium_dynamics.calibration",
    "plot.collectives": "chapters.collectives.figures",
    "plot.comparison": "chapters.comparison.figures",
    "plot.comparison_depths": "chapters.comparison.depths",
    "plot.kinetic_ising": "chapters.kinetic_ising.figures",
    "plot.nonequilibrium_dynamics": "chapters.nonequilibrium_dynamics.figures",
    "plot.rbm_mixtures": "chapters.rbm_mixtures.figures",
    "plot.spin_transformers": "chapters.spin_transformers.figures",
    "plot.transient": "chapters.nonequilibrium_dynamics.transient",
    "printed": "chapters.spin_transformers.printed",
    "rbm.random_features": "chapters.rbm_mixtures.random_features",
    "rbm.stack": "chapters.rbm_mixtures.stack",
    "response": "chapters.collectives.response",
    "self_attention.Spectrum": "chapters.attention_dynamics.spectrum.Spectrum",
    "self_attention.classification": "spinbook.self_attention.window",
    "self_attention.extended": "chapters.attention_dynamics.extended",
    "self_attention.lyapunov_spectrum": "chapters.attention_dynamics.spectrum.lyapunov_spectrum",
    "self_attention.spectrum": "chapters.attention_dynamics.spectrum",
    "sweep.__main__": "experiments.__main__",
    "sweep.published": "experiments.published",
    "validate.record": "experiments.designs.record",
    "vector.calibration": "experiments.vector.calibration",
    "vector.closure": "experiments.vector.closure",
    "vector.fidelity": "experiments.vector.fidelity",
    "vector.infinite": "chapters.spin_transformers.infinite",
    "vector.one_step": "experiments.vector.one_step",
}
"""Names within this package, and the full names that these have now; those of the parts of a module follow."""
GONE = {
    "adaptive_tap.SphericalLargeDim": "use Spherical, which is exact",
    "adaptive_tap.couplings.symmetrize_bounded": "use Bounded, which keeps gradients too",
    "adaptive_tap.priors.SphericalLargeDim": "use Spherical, which is exact",
    "entropy_production.relax": "iterate spinbook.vector.mean_field.naive_step, and divergence for the mismatch",
    "entropy_production.paths.relax": "iterate entropy_budget, whose result has the distribution after the step",
    "entropy_production.relaxation.relax": "iterate spinbook.vector.mean_field.naive_step",
    "rbm.convergence_radius.constant": "it is infinite",
    "rbm.convergence_radius.exponential": "it is rate",
    "rbm.convergence_radius.gaussian": "it is infinite",
    "rbm.convergence_radius.laplace": "it is 1 / scale",
    "rbm.convergence_radius.poisson": "it is infinite",
    "rbm.exact.visible_distribution": "it is jax.nn.softmax(-energies) of all states",
    "rbm.recall.Recall": "retrieve corrupted patterns by spinbook.rbm.retrieve and compare them",
    "rbm.recall.corrupt": "corrupt patterns by NumPy or JAX",
    "rbm.recall.erasure": "corrupt patterns by NumPy or JAX",
    "rbm.recall.gaussian_noise": "corrupt patterns by NumPy or JAX",
    "rbm.recall.measure": "retrieve corrupted patterns by spinbook.rbm.retrieve and compare them",
    "rbm.recall.sign_flips": "corrupt patterns by NumPy or JAX",
    "self_attention.Classification": "classify_sweep gives a Dataset",
    "self_attention.classify": "sweep over starts by bifurcation, then classify_sweep",
    "self_attention.lyapunov.exponents_by_definition": "a second way; it is tests/self_attention/definition.py",
    "self_attention.scan": "the same sweep in JAX, a second way; it is tests/self_attention/scan.py in the repository",
    "vector.reference": "the TAP equation in matrices, a second way; it is tests/vector/reference.py in the repository",
}
"""Names within this package of what it had and has no more, with what to do instead, for one release."""
_PACKAGE = __name__.partition(".")[0]


def new_name(name: str) -> str | None:
    """What a module, or a part of it, is called now that had this full name; None if none had it.

    >>> new_name("spinbook.comparison.tasks")
    'experiments.comparison.tasks'
    """
    package, _, old = name.partition(".")
    known = [one for one in MOVED if package == _PACKAGE and f"{old}.".startswith(f"{one}.")]
    longest = max(known, key=len, default=None)
    return None if longest is None else MOVED[longest] + old.removeprefix(longest)


def explain(module: dict[str, Any]) -> None:
    """Give a module, by its ``globals()``, those of its names that moved, and words for those that are gone.

    Type checkers do not see it, and so still find names that never were.

    >>> explain(module := {"__name__": "spinbook.rbm.convergence_radius"})
    >>> module["__getattr__"]("laplace")
    Traceback (most recent call last):
    AttributeError: spinbook.rbm.convergence_radius.laplace is gone: it is 1 / scale
    """
    own = module["__name__"]

    def missing(name: str) -> Any:
        if new_name(f"{own}.{name}") is not None:
            return pkgutil.resolve_name(_warned(f"{own}.{name}"))
        instead = GONE.get(f"{own}.{name}".removeprefix(f"{_PACKAGE}."))
        known = f"{own}.{name} is gone: {instead}"
        raise AttributeError(f"module {own!r} has no attribute {name!r}" if instead is None else known)

    module["__getattr__"] = missing


class Finder(MetaPathFinder, InspectLoader):
    """Finds a module under its old name: it is the same object as under the new one, and a warning says where it is."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module under its new name, loaded by this finder; None for a name that has not moved."""
        name = new_name(fullname)
        instead = GONE.get(fullname.removeprefix(f"{_PACKAGE}."))
        if instead is not None:
            raise ModuleNotFoundError(f"{fullname} is gone: {instead}", name=fullname)
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
