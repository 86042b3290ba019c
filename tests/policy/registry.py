"""Every public function with arguments that it accepts, small and of one shape each, so that compiled code is shared.

An entry names the module and gives the arguments by name; those that are an ``Opaque`` are passed as they are and never
spoilt: functions, networks, modules. ``REASONS`` says what has no entry, and why.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch


@dataclass(frozen=True)
class Opaque:
    """An argument that is made when it is needed, and not spoilt."""

    make: Callable[[], Any]


@dataclass(frozen=True)
class Case:
    function: Callable[..., Any]
    arguments: dict[str, Any]
    # Why NaN or infinity may come out although every argument was good, as the docstring says; empty if it may not.
    documented: str = ""


@dataclass
class Group:
    """Functions of one module with a table of arguments in common."""

    module: str
    names: str
    table: dict[str, Any]
    documented: str = ""
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None


PACKAGES = ("spinbook", "experiments", "chapters")
# What is no figure in the chapters.
NUMBERS = (
    "chapters.attention_dynamics.extended",
    "chapters.attention_dynamics.spectrum",
    *(f"chapters.collectives.response.{name}" for name in ("block", "couplings", "exact", "mean_field", "terms")),
    "chapters.kinetic_ising.published",
    "chapters.nonequilibrium_dynamics.neqnn",
    "chapters.rbm_mixtures.random_features",
    "chapters.rbm_mixtures.stack",
    "chapters.spin_transformers.infinite",
    "chapters.spin_transformers.printed",
    "chapters.spin_transformers.runs",
)
KEY = Opaque(lambda: jax.random.key(0))
UNCHECKED = "takes what its callers have checked, and says so"

# Modules, or single names in them, without an entry: on each line a package, and names in it.
REASONS = {
    UNCHECKED: """
        chapters.attention_dynamics: extended spectrum.derivatives
        chapters.collectives.response: couplings
        chapters.spin_transformers.infinite: naive tap tap_without_self_term central_limit
        experiments.comparison: blocks torch_blocks.standardized training.hessenberg transient.softmax
        experiments.depth.rows: free_energy normalized rectified
        experiments.encoder: attend block embed feed_forward normalised
        experiments.entropy_production: signal_share
        spinbook: fixed_point.spectral_radii ising.echo replicas simulation
        spinbook.adaptive_tap: implicit.differentiable_once priors vector.gaussian_mean
        spinbook.entropy_production: mean_field.driven_production steady.warn_of_drift
        spinbook.free_energy: couplings.symmetric_traceless saddle
        spinbook.self_attention: kernel lanes mean_field.overlaps mean_field.step
        spinbook.sphere: balanced exact large_d squared_length
        spinbook.spin_transformer: naive spread tap unit_length
        spinbook.vector: fluctuations heads
    """,
    "of a record of the book, which its checksum seals": """
        experiments.comparison: by_depth contrasts depths doubts experiment headline simplest summary trained_heads
        experiments.comparison: table transient_record
        spinbook: records
        experiments.comparison.questions: answer answers is_complete primary_cells
        experiments.depth: questions mnist.answers mnist.recorded mnist.wrong_answers
        experiments.lens_record: by_head causal packed recorded runs sample values
    """,
    "trains, by records that have entries of their own": """
        experiments: digit_network
        experiments.comparison: training.follow training.train
        experiments.comparison.transient: compare restored resumed train
        experiments.depth: cells.chosen cells.tuned experiment mnist.collect mnist.train
        experiments.entropy_production: learn_recall sculpt
        experiments.vector: fidelity.trained
    """,
    "made of modules that have entries": """
        experiments.comparison: blocks.Averaged blocks.Block blocks.Stack torch_blocks.Stack
        experiments.comparison.transient: LanguageModel assembled spins
    """,
    "cases of the book and their record, see experiments.comparison": """
        experiments.vector: phases rows shapes
        experiments.vector.fidelity: cases compute delayed_estimate forgotten independent_correlations jackknife measure
        experiments.vector.fidelity: own_means_apart record sampled_halves squared_error steady_means system
    """,
    "cases, which are checked where they are made, and their record": """
        experiments.vector.calibration: cells compute draws gains measure noises over_prediction record seeded system
        experiments.vector.calibration: table tried
    """,
    "checks, see spinbook.validate": """
        experiments: designs
        spinbook: arguments tensors self_attention.double sphere.in_range sphere.inside_ball
        spinbook.adaptive_tap: ising.checked_model priors.require_positive_definite
    """,
    "no arguments": """
        chapters: kinetic_ising.published.published_starts
        chapters.nonequilibrium_dynamics.neqnn: cases settling
        experiments: comparison.mixers.Fourier datasets.digits
    """,
    "what a net said, and how often it found it": "experiments.comparison.training: scored",
    "of a design, which is checked where it is made": "experiments.comparison.transient: text_of",
    "arrays, made by the functions of its module": "experiments.comparison.tasks: Task",
    "tasks and folders, no numbers; tests/sweep": "spinbook: sweep",
    "names of sweeps, and folders; tests/experiments/test_published.py": "experiments: published",
    "text of the sources, and their runs, whose steps check": "chapters.spin_transformers: printed runs",
    "paths; tests/experiments/datasets": "experiments.datasets: files mnist",
    "a path, or no arguments": "experiments.datasets.moby_dick: load sample",
    "files with a checksum; tests/experiments/test_records.py": "experiments: records",
    "files with a checksum; tests/experiments/depth/test_experiment.py": "experiments.depth.cells: begun digest",
    "a path, or weights made of it": "experiments.encoder: load run tokenizer",
    "the checks themselves; tests/test_validate.py": "spinbook: validate",
    "shared by checks and modules with PyTorch's transforms; takes no input of its own": "spinbook: transforms",
    "linear maps of tensors; those that take numbers have entries": "spinbook.adaptive_tap: couplings",
    "a dtype": "spinbook.adaptive_tap.implicit: floor",
    "modules: their calls have entries, the rest takes checked tensors": "spinbook.adaptive_tap: attention",
    "takes a Dataset of bifurcation": "spinbook.self_attention.attractors: classify_sweep",
    "a number of heads, checked by the module": "spinbook.spin_transformer: one_sphere sphere_per_head",
    "a start, made by the module": "spinbook.spin_transformer: AtFields AtRest Learned",
    "functions": "spinbook: sphere.Response spin_transformer.Inputs",
    "takes a Simulation, which is checked where it is made": "spinbook.entropy_production.steady: from_simulation",
}
EXEMPT = {
    f"{package}.{name}": why
    for why, lines in REASONS.items()
    for package, _, names in (line.strip().partition(": ") for line in lines.strip().splitlines())
    for name in names.split()
}

NOT_FOUND = "NaN where no solution was found"
ENDLESS = "NaN where fluctuations do not die out"
DIVERGENT = "infinite where q is zero and p is not"


def _the(name: str) -> Opaque:
    """What has this name, imported when it is needed."""
    return Opaque(lambda: pkgutil.resolve_name(name))


def _first(name: str) -> Opaque:
    """The first of those of this name."""
    return Opaque(lambda: pkgutil.resolve_name(name)[0])


def _made(name: str, *arguments: Any, **options: Any) -> Opaque:
    """What the class or function of this name makes of the arguments."""
    return Opaque(lambda: pkgutil.resolve_name(name)(*arguments, **options))


def _random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


_J = 0.3 * _random(3, 3)
_SYMMETRIC = (_J + _J.T) * (1 - np.eye(3))
_SPINS = np.where(_random(2, 3, seed=1) > 0, 1.0, -1.0)
_P = np.full(8, 1 / 8)

NUMERICS: dict[str, Any] = {"tol": 1e-8, "max_steps": 50}
ISING: dict[str, Any] = {
    "couplings": _J, "fields": 0.1 * _random(3), "beta": 0.7, "magnetizations": 0.1 * _random(3, seed=2),
    "previous": 0.1 * _random(3, seed=2), "spins": _SPINS, "distribution": _P, "other": _P, "num_spins": 3,
    "steps": 3, "transient": 1, "key": KEY, "start": 0.5, "max_steps": 50,
    "delayed_correlations": _random(3, 3), "tol": 1e-8,
}  # fmt: skip
SK: dict[str, Any] = {
    "beta": 1.5, "field_width": 0.5, "field_length": 0.5, "coupling_mean": 1.0, "coupling_std": 0.1,
    "key": KEY, "num_spins": 3, "mean": 1.0, "std": 0.1, "width": 0.5,
}  # fmt: skip
SPHERE: dict[str, Any] = {
    "fields": _random(2, 4), "direction": _random(2, 4, seed=1), "beta": 0.7, "magnetizations": 0.2 * _random(2, 4),
    "order": 1.5, "x": 2.0, "dim": 4, "key": KEY,
}  # fmt: skip
_ON_SPHERE = _random(2, 3, 4)
_ON_SPHERE /= np.linalg.norm(_ON_SPHERE, axis=-1, keepdims=True)
VECTOR: dict[str, Any] = {
    "couplings": _J, "fields": 0.5 * _random(3, 4), "beta": 0.7, "magnetizations": 0.1 * _random(3, 4),
    "previous": 0.1 * _random(3, 4, seed=1), "previous_fields": 0.5 * _random(3, 4), "other": 0.5 * _random(3, 4),
    "start": 0.1 * _random(3, 4), "steps": 3, "transient": 1, "key": KEY, "tol": 1e-8, "max_steps": 50,
}  # fmt: skip
FIDELITY: dict[str, Any] = {
    "couplings": np.full((3, 3), 1 / 3), "fields": 0.5 * _random(3, 4), "magnetizations": 0.1 * _random(3, 4),
    "beta": 0.7, "replicas": 8, "steps": 2, "transient": 1, "updates": 3, "num_sites": 4, "dim": 8, "key": KEY,
}  # fmt: skip
_ATTENTION = np.exp(_random(3, 3))
_ATTENTION /= _ATTENTION.sum(axis=1, keepdims=True)
LENS: dict[str, Any] = {
    "attention": _ATTENTION, "distribution": np.array([0.2, 0.3, 0.5]), "states": _random(3, 4), "beta": 0.7,
    "queries": _random(3, 4), "keys": _random(3, 4, seed=1), "magnetizations": 0.1 * _random(3, 4), "num_probes": 2,
    "key": KEY, "layer": Opaque(lambda: jnp.tanh), "parameters": Opaque(tuple),
    "output": _random(6, 3), "predictors": _random(2, 6, 3, seed=1),
    "fitted": Opaque(lambda: np.arange(6) < 4), "mask": Opaque(lambda: np.tril(np.ones((3, 3), bool))),
}  # fmt: skip
_HEADS = np.stack([_ATTENTION, _ATTENTION])
LENS_HEADS: dict[str, Any] = {
    "attention": _HEADS, "values": _random(2, 3, 2), "from_values": _random(4, 5), "given": _random(3, 3, 5),
    "to_values": _random(5, 4),
}  # fmt: skip
RBM: dict[str, Any] = {
    "visible": np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]), "hidden": _random(2, 2), "weights": 0.5 * _random(3, 2),
    "patterns": _random(4, 3), "queries": _random(2, 3, seed=1), "beta": 1.5, "key": KEY, "steps": 3, "bias": 0.1,
    "num_units": 3, "energies": _random(8), "std": 0.1, "fraction": 0.5, "fill": 0.0, "order": 4, "t": _random(2, 3),
    "kappas": _random(4), "num_queries": 5, "batch_size": 2,
}  # fmt: skip
PRIOR: dict[str, Any] = {"probability": 0.3, "rate": 4.0, "scale": 0.2, "value": 1.5, "t": np.array([0.5, -1.0, 2.0])}
RESPONSE: dict[str, Any] = {
    "couplings": _J, "fields": 0.2 * _random(3, 1), "beta": 0.7, "spins": _SPINS[..., None], "num_spins": 2, "dim": 2,
    "num_nodes": 4, **NUMERICS,
}  # fmt: skip
TORCH: dict[str, Any] = {
    "couplings": 0.5 * _SYMMETRIC, "fields": 0.3 * _random(3), "beta": 0.7, "magnetizations": 0.1 * _random(3),
    "cavity_variances": 0.1 * np.ones(3), "num_spins": 3, "damping": 0.5, "dim": 2, "std": 0.1,
    "step": _the("spinbook.adaptive_tap.ising.adaptive_update"), **NUMERICS,
}  # fmt: skip
VECTOR_TORCH: dict[str, Any] = {
    "couplings": 0.3 * _SYMMETRIC[:, :, None, None], "fields": 0.3 * _random(3, 1), "damping": 0.5, **NUMERICS,
}  # fmt: skip
JUDGED: dict[str, Any] = {
    "differences": [0.3, 0.5, -0.1], "ours": [0.3, 0.5, 0.2], "theirs": [0.1, 0.2, 0.3], "margin": 0.5, "level": 0.05,
    "confidence": 0.9, "num_pairs": 5, "distance": 0.5, "spread": 1.0, "scores": [0.3, 0.5], "failed": [0.0, 1.0],
    "blind": 0.1, "power": 0.9, "least": 5, "most": 9, "power_of": Opaque(lambda: lambda n: n / 10),
    "p_values": [0.01, 0.2, 0.04],
    "verdicts": Opaque(lambda: [pkgutil.resolve_name("experiments.comparison.judging.Verdict")("yes", 0.01, 0.99)] * 2),
}  # fmt: skip
TASKS: dict[str, Any] = {
    "num_pairs": 2, "num_keys": 4, "num_values": 3, "num_train": 8, "num_test": 4, "seed": 0, "patch": 7,
    "num_validation": 50, "num_characters": 32, "num_gaps": 5, "held_out": 0.05,
    "images": _made("experiments.datasets.mnist.sample"),
    "text": _made("experiments.datasets.moby_dick.sample"),
}  # fmt: skip
COUNTED: dict[str, Any] = {
    "symbols": [0, 1, 2, 0, 1, 1, 0], "order": 2, "num_symbols": 3, "context": [2, 0],
    "model": _made("experiments.depth.kneser_ney.counted", [0, 1, 2, 0, 1, 1], 2, num_symbols=3),
    "name": "vanilla", "depth": 2, "dim": 16, "num_heads": 2, "key": KEY,
}  # fmt: skip
TRAINING: dict[str, Any] = {
    "num_examples": 10, "recipe": _made("experiments.comparison.training.Recipe", 3, 4), "seed": 0,
    "update": Opaque(lambda: lambda m: 0.5 * m), "state": _random(3), "steps": 2, "num_updates": 20, "dim": 8,
    "task": Opaque(lambda: _task()), "module": _first("experiments.comparison.modules.MODULES"),
    "name": "FNet", "depth": 2, "grid": Opaque(lambda: (4,)),
}  # fmt: skip
CALIBRATED: dict[str, Any] = {
    "J": np.full((4, 4), 0.25), "m": 0.1 * _random(4, 6), "x": 0.5 * _random(4, 6, seed=1), "beta": 1.0,
    "squared": np.array([[0.04, 0.004], [0.01, 0.001]]),
}  # fmt: skip
FREE: dict[str, Any] = {
    "h": 0.5 * _random(2, 4), "couplings": np.array([[0.0, 0.2], [0.2, 0.0]]), "beta": 0.7, "t": np.full(2, 2.0),
    "t0": np.full(2, 2.0), "direction": _random(2, 4), "num_terms": 3, "num_spins": 2, "dim": 4, "steps": 2,
    "field": _random(2, 4), "spins": _ON_SPHERE[0, :2], "field_stiffness": 1.0, "tol": 1e-10, "max_steps": 50,
    "generator": Opaque(lambda: torch.Generator().manual_seed(0)),
}  # fmt: skip
QUESTIONED: dict[str, Any] = {
    "task": "mnist", "least": 5, "most": 9, "scores": Opaque(dict),
    "question": _first("experiments.comparison.questions.QUESTIONS"),
}  # fmt: skip
ANSWERED: dict[str, Any] = {
    "record": _made("experiments.comparison.transient_record.recorded", sample=True), "beta": 1.0,
    "question": _first("experiments.comparison.transient_questions.QUESTIONS"),
}  # fmt: skip
SOLVED: dict[str, Any] = {"y0": _random(3), "damping": 0.9, "history": 2, **NUMERICS}
FEATURES = RBM | {"num_features": 5, "dim": 3, "directions": _random(5, 3, seed=2)}
STACKED: dict[str, Any] = {
    "visible": RBM["visible"], "weights": Opaque(lambda: [_random(3, 2), _random(2, 2, seed=1)]),
    "biases": Opaque(lambda: [np.zeros(2), np.zeros(2)]),
}  # fmt: skip
READ: dict[str, Any] = {
    "free_energy": Opaque(lambda: lambda J, h: -jnp.sum(J * (h @ h.T))),
    "moments": _made("chapters.collectives.response.Moments", np.zeros((3, 1)), np.eye(3)),
    "couplings": Opaque(lambda: lambda h: h @ h.T),
}  # fmt: skip
EXPONENTS: dict[str, Any] = {
    "f": Opaque(lambda: lambda x, p: p * jnp.sin(x)), "start": _random(2), "parameters": 0.5, "steps": 8,
    "transient": 3, "num_exponents": 2, "num_blocks": 4, "orthonormalise_every": 2,
}  # fmt: skip
CORRELATED: dict[str, Any] = {
    "patterns": np.array([[1.0, 1.0, -1.0], [1.0, -1.0, 1.0]]), "averages": 0.3 * _random(4, 3, 2), "context": 3,
    "gamma": 5.0, "epsilon": 0.1, "positions": 0.1 * _random(2, 4, 3), "pairs": 0.3 * _random(4, 3, 3),
    "quads": 0.1 * _random(4, 1, 3),
}  # fmt: skip


@cache
def _task() -> Any:
    from experiments.comparison.tasks import recall

    return recall(num_pairs=2, num_keys=4, num_values=3, num_train=8, num_test=4)


@cache
def _network() -> Any:
    from spinbook.self_attention import paper_network

    return paper_network()


NETWORK: dict[str, Any] = {
    "turning": 4,
    "network": Opaque(_network), "beta": 1.2, "betas": [0.5, 1.2], "steps": 40, "transient": 5, "num_blocks": 4,
    "num_exponents": 1, "orthonormalise_every": 2, "num_spins": 30, "key": KEY, "num_bits": 2, "position": 0,
    "token": np.array([1.0, -1.0, 1.0]), "attention": 0.3 * _random(4, 3), "num_features": 3, "num_segments": 3,
    "context": 4, "num_positional_bits": 2, "epsilon": 0.02, "gamma": 100.0, "num_windows": 2, "exponents": [0.1, -0.4],
    "zero": 0.0, "states": _random(1, 10, 2), "tolerance": 1e-6, "blocks": _random(2, 20), "period": [0, 3],
    "map_period": 4, "num_tail": 10, "num_bins": 20, "max_crossings": 4, "gammas": [100.0], "epsilons": [0.02],
    "component": 0, "plane": 1, "plane_tolerance": 1e-3, "period_tolerance": 1e-6, "num_random_starts": 1,
}  # fmt: skip
WINDOWED = NETWORK | {
    "couplings": Opaque(
        lambda: pkgutil.resolve_name("spinbook.self_attention.mean_field.couplings")(_network(), beta=1.2)
    ),
    "window": Opaque(lambda: pkgutil.resolve_name("spinbook.self_attention.token_window")(_network())),
}


def _of_maker(maker: Callable[..., Any]) -> Callable[..., Any]:
    """maker(parameters)(t)."""

    def call(t: Any, **parameters: Any) -> Any:
        return maker(**parameters)(t)

    return _with_parameters(call, [*inspect.signature(maker).parameters, "t"])


def _of_sampler(maker: Callable[..., Any]) -> Callable[..., Any]:
    def call(key: Any, t: Any, **parameters: Any) -> Any:
        return maker(**parameters)(key, t)

    return _with_parameters(call, [*inspect.signature(maker).parameters, "t", "key"])


def _with_parameters(call: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
    kind = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in names if name != "max_count"])
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _method(make: Callable[[], Any], name: str) -> Callable[..., Any]:
    """A method of an object that is made once, when it is called first."""
    made = cache(make)
    return lambda *arguments, **options: getattr(made(), name)(*arguments, **options)


def _model() -> Any:
    from spinbook.free_energy import VectorSpinModel

    return VectorSpinModel(2, 4, 0.7, torch.tensor([[0.0, 0.2], [0.2, 0.0]], dtype=torch.float64))


UNDAMPED = "one undamped step, which looks at nothing: infinite where a spin is saturated"
MAKERS = "bernoulli constant exponential laplace poisson"

GROUPS = [
    Group(
        "experiments.comparison.judging",
        "above equivalence_power equivalent filled greatest_spread holm one_sided_power paired pairs_needed together",
        JUDGED,
    ),
    Group(
        "experiments.comparison.tasks",
        "classify_digits classify_mnist fill_in most_frequent recall recall_apart",
        TASKS,
    ),
    Group("experiments.depth.kneser_ney", "counted distribution losses", COUNTED),
    Group("experiments.depth.rows", "made use", COUNTED),
    Group("experiments.comparison.training", "batches rate_profile shared_start", TRAINING),
    Group("experiments.comparison.modules", "num_parameters stacked width", TRAINING),
    Group("experiments.comparison.questions", "contrasts endpoint in_order runs_needed", QUESTIONED),
    Group("experiments.comparison.transient_questions", "answer answers undecided", ANSWERED),
    Group("experiments.datasets.moby_dick", "decode encode", {"characters": [0, 5, 35], "text": "Call me Ishmael."}),
    Group("chapters.nonequilibrium_dynamics.neqnn", "load", {"case": "learned, K=1"}),
    Group("experiments.vector.calibration", "linear_response spread_delayed", CALIBRATED, ENDLESS),
    Group("experiments.vector.calibration", "predicted_gains", CALIBRATED, "NaN for symmetric couplings"),
    Group("experiments.vector.calibration", "root", CALIBRATED, "NaN where it is not two of them above zero"),
    Group("ising.mean_field", "correlations delayed_correlations first_order_delayed_correlations", ISING),
    Group("ising.mean_field", "averaged_step flat_tap_step naive_step", ISING),
    Group("ising.mean_field", "simulate steady_state tap_solve tap_step", ISING, NOT_FOUND),
    Group("ising.mean_field", "collective_shift", ISING, ENDLESS),
    Group("ising.exact", "correlations covariance delayed_correlations entropy_production magnetizations mean", ISING),
    Group("ising.exact", "product_distribution states stationary_distribution stationary_solve step", ISING),
    Group("ising.exact", "transition_matrix", ISING),
    Group("ising.exact", "kullback_leibler", ISING, DIVERGENT),
    Group("ising.stochastic", "simulate step", ISING),
    Group("ising.sherrington_kirkpatrick", "critical_beta naive_critical_beta naive_order_parameters", SK),
    Group("ising.sherrington_kirkpatrick", "order_parameters sample_couplings sample_fields", SK),
    Group("ising.sherrington_kirkpatrick", "tap_critical_beta tap_order_parameters", SK),
    Group("chapters.kinetic_ising.published", "published_system", {"sample": 3}),
    Group("sphere", "bessel_ratio covariance covariance_large_d field field_large_d first_derivative", SPHERE),
    Group("sphere", "first_derivative_large_d log_partition magnetization magnetization_large_d", SPHERE),
    Group("sphere", "printed_second_derivative radius sample second_derivative", SPHERE),
    Group("sphere", "second_derivative_large_d squared_radius", SPHERE),
    Group("vector.mean_field", "flat_tap_step message_passing_step naive_step second_order_magnetization", VECTOR),
    Group("vector.mean_field", "spread_step", VECTOR),
    Group("vector.phases", "naive_squared_order squared_order", SK),
    Group("vector.phases", "border naive_border", SK, "NaN where no field is short enough"),
    Group("vector.mean_field", "simulate steady_state tap_solve tap_step", VECTOR, NOT_FOUND),
    Group("vector.mean_field", "collective_mode", FIDELITY, ENDLESS),
    Group("vector.stochastic", "simulate step", VECTOR | {"spins": _ON_SPHERE}),
    Group("experiments.vector.fidelity", "sampled spread_means twins", FIDELITY),
    Group("vector.closure", "steady_state", FIDELITY, NOT_FOUND),
    Group("lens", "closure", LENS | {"values": _random(3, 4)}, NOT_FOUND),
    Group("lens", "attended concentration gamma irreversibility positional second_eigenvalue stationary", LENS),
    Group("lens", "swap token_cosine", LENS),
    Group("lens", "key_lengths", LENS, "NaN where all keys score alike"),
    Group("lens", "sink_law", LENS, f"{ENDLESS}, or where there is none"),
    Group("lens", "long_keys", LENS, "NaN where all keys have one length"),
    Group("lens", "measure", {"attentions": _HEADS[None, None], "hidden_states": _random(2, 1, 3, 4)}),
    Group("experiments.lens_record.jacobians", "growth", LENS),
    Group("experiments.lens_record.jacobians", "antisymmetric_share", LENS, "NaN where a layer ignores its states"),
    Group("experiments.lens_record.echoes", "explained", LENS),
    Group("experiments.lens_record.echoes", "contributions echo", LENS_HEADS),
    Group("experiments.encoder", "windows", {"tokens": np.arange(20.0), "number": 2, "length": 6}),
    Group(
        "chapters.spin_transformers.infinite",
        "steady_length",
        {"beta": 1.0, "coupling_std": 1.0, "field_length": 1.0},
        "NaN where there is no state",
    ),
    Group("entropy_production.mean_field", "angle_estimate leading_order source_delayed_correlations", VECTOR),
    Group("entropy_production.mean_field", "vector_delayed_correlations vector_mean_field", VECTOR),
    Group("entropy_production.mean_field", "ising_mean_field", ISING),
    Group("entropy_production.paths", "entropy_budget", ISING),
    Group("entropy_production.relaxation", "divergence", VECTOR),
    Group("entropy_production.relaxation", "contraction_factor", TRAINING | {"step": TRAINING["update"]}),
    Group("entropy_production.steady", "from_delayed_correlations", ISING),
    Group("experiments.memory", "causal", {"num_sites": 3}),
    Group("fixed_point", "solve", SOLVED | {"f": Opaque(lambda: lambda y: jax.tree.map(jnp.cos, y))}),
    Group("rbm.energies", "joint_energy", RBM),
    Group(
        "rbm.energies", "effective_energy", RBM | {"cumulant_generating_function": Opaque(lambda: lambda t: t * t / 2)}
    ),
    Group("rbm.mixture", "mixture_log_density mixture_log_partition mixture_weights modern_hopfield_energy", RBM),
    Group("rbm.mixture", "posterior_mean responsibilities retrieve", RBM),
    Group("rbm.gibbs", "simulate step", RBM | {"hidden_sampler": _the("spinbook.rbm.hidden_given_visible.gaussian")}),
    Group("rbm.exact", "interaction_strength_by_order interactions states", RBM),
    Group("rbm.recall", "overlap", RBM | {"queries": _random(4, 3, seed=1)}),
    Group("rbm.recall", "trajectory", RBM),
    Group("rbm.cumulants", "bernoulli constant exponential gaussian laplace poisson series", RBM | PRIOR),
    Group("rbm.convergence_radius", "bernoulli", PRIOR),
    Group("rbm.cumulant_generating_functions", "gaussian", PRIOR),
    Group("rbm.cumulant_generating_functions", MAKERS, PRIOR, wrap=_of_maker),
    Group("rbm.hidden_sum", "gaussian", PRIOR),
    Group("rbm.hidden_sum", MAKERS, PRIOR, wrap=_of_maker),
    Group("rbm.hidden_given_visible", "gaussian", PRIOR | {"key": KEY}),
    Group("rbm.hidden_given_visible", MAKERS, PRIOR | {"key": KEY}, wrap=_of_sampler),
    Group("rbm.visible_terms", "gaussian linear", RBM | {"mean": 0.1, "scale": 0.5, "t": _random(3)}, wrap=_of_maker),
    Group("chapters.rbm_mixtures.random_features", "directions retrieve", FEATURES),
    Group("chapters.rbm_mixtures.stack", "effective_energy", STACKED),
    Group("chapters.collectives.response.exact", "configurations energy", RESPONSE),
    Group(
        "chapters.collectives.response.exact",
        "free_energy moments",
        RESPONSE | {"configurations": _made("chapters.collectives.response.exact.configurations", 3, 1)},
    ),
    Group("chapters.collectives.response.mean_field", "naive_free_energy naive_solve", RESPONSE, NOT_FOUND),
    Group("chapters.collectives.response.mean_field", "tap_free_energy tap_solve", RESPONSE, NOT_FOUND),
    Group("chapters.collectives.response.terms", "of_free_energy of_moments", RESPONSE | READ),
    Group("adaptive_tap.exact", "log_partition magnetizations moments states susceptibilities", TORCH),
    Group("adaptive_tap.ising", "solve_ising solve_naive_ising solve_tap_ising", TORCH),
    Group("adaptive_tap.ising", "adaptive_update naive_update tap_update", TORCH, UNDAMPED),
    Group("adaptive_tap.ising", "iterate_ising", TORCH, "the trace of an iteration that may diverge"),
    Group("adaptive_tap.vector", "mean_response solve_gaussian", VECTOR_TORCH),
    Group("adaptive_tap.vector", "solve", VECTOR_TORCH | {"prior": _made("spinbook.adaptive_tap.priors.Binary")}),
    Group("adaptive_tap.vector", "checked_couplings", {"couplings": Opaque(lambda: torch.zeros(3, 3, 1, 1))}),
    Group("adaptive_tap.implicit", "solve", SOLVED | {"f": Opaque(lambda: torch.cos), "y0": _random(2, 3)}),
    Group("free_energy.exact", "correlations free_energy internal_energy log_partition magnetizations", FREE),
    Group("free_energy.sampling", "simulate spin_given_field step", FREE),
    Group(
        "free_energy.sampling",
        "uniform",
        {"shape": 4},
        wrap=lambda f: lambda shape: f(shape, generator=torch.Generator()),
    ),
    Group("free_energy.attention", "neumann_terms", FREE),
    Group("free_energy.couplings", "sample", FREE),
    Group("self_attention.mean_field", "couplings", NETWORK),
    Group("self_attention.mean_field", "simulate", WINDOWED),
    Group("self_attention.trajectories", "simulate", NETWORK),
    Group("self_attention.lyapunov", "kaplan_yorke_dimension lyapunov_exponents mean_log_determinant", NETWORK),
    Group("lyapunov", "exponents", EXPONENTS, "NaN where an orbit left the finite numbers"),
    Group(
        "chapters.attention_dynamics.spectrum",
        "lyapunov_spectrum",
        NETWORK,
        "expected a map whose steps can be inverted",
    ),
    Group(
        "self_attention.bifurcations",
        "bifurcation",
        NETWORK,
        "NaN for crossings that were not there; -inf at beta = 0",
    ),
    Group("self_attention.window", "random_windows", NETWORK),
    Group("self_attention.attractors", "shortest_period", NETWORK, "NaN where there is no period"),
    Group("self_attention.attractors", "verdicts", NETWORK),
    Group("self_attention.network", "pair_correlations paper_network positional_bits quad_correlations", NETWORK),
    Group("self_attention.network", "random_network", NETWORK),
    Group("self_attention.network", "correlated_network coupled_network", CORRELATED),
    Group("self_attention.sign_classes", "sign_classes", NETWORK),
    Group("self_attention.stochastic", "sample_finite segment_sizes", NETWORK),
    Group(
        "self_attention.window", "attention_window start_window token_window", NETWORK | {"start": 0.3 * _random(4, 3)}
    ),
]

# Classes: how they are made, and what is called then.
CLASSES: dict[str, Case] = {}


def _full(name: str) -> str:
    """The whole name of a module or of what is in one: without a package it is one of the library."""
    return name if name.partition(".")[0] in PACKAGES else f"spinbook.{name}"


def _add(name: str, function: Callable[..., Any], arguments: dict[str, Any], documented: str = "") -> None:
    CLASSES[_full(name)] = Case(function, arguments, documented)


def _new(name: str) -> Callable[..., Any]:
    """A class, or what makes an object, by its name: imported when it is called."""
    return lambda *arguments, **options: pkgutil.resolve_name(_full(name))(*arguments, **options)


def _bifurcation(name: str, default: str, **parts: Any) -> Any:
    """With parts of one of its options in the place of those of the default."""
    module = importlib.import_module("spinbook.self_attention.bifurcations")
    length = {"steps": 40, "transient": 5} if name == "observation" else {}
    return module.bifurcation(_network(), [0.5, 1.2], **{name: getattr(module, default)._replace(**parts)}, **length)


@cache
def _carrier() -> Any:
    module = importlib.import_module("spinbook.spin_transformer")
    options = {"theory": module.naive, "dynamics": module.Unroll(2), "inputs": module.as_magnetizations}
    return module.SpinTransformerModule(6, key=jax.random.key(0), start=module.Learned, feed_forward=4, **options)


@cache
def _single() -> Any:
    return _new("spin_transformer.SpinTransformerModule")(6, key=jax.random.key(0))


def _read(x: Any, effective_fields: Any) -> Any:
    return _carrier().readout(x, state=_new("spin_transformer.State")(effective_fields))


def _smoke(key: Any) -> Any:
    module = importlib.import_module("experiments.comparison.transient")
    return module.made(module.Row("1"), module.SMOKE, key)


_X = {"x": _random(3, 6), "context": _random(2, 6, seed=1)}
# Objects are made once: they are called, or a method of theirs.
for _name, _make, _called, _arguments in (
    ("spin_transformer.SpinTransformerModule", lambda n: n(6, 2, key=jax.random.key(0)), "__call__", _X),
    ("spin_transformer.SpinTransformer", lambda n: n(2, 6, 2, key=jax.random.key(0)), "__call__", _X),
    ("experiments.memory.MemoryModule", lambda n: n(4, key=jax.random.key(0)), "__call__", {"x": _random(3, 4)}),
    ("experiments.memory.MemoryStack", lambda n: n(2, 4, key=jax.random.key(0)), "step", {"x": _random(3, 4)}),
    ("adaptive_tap.attention.AdaptiveTAPAttention", lambda n: n(3, 2), "__call__", {"x": _random(2, 3, 2)}),
    ("adaptive_tap.attention.MeanFieldAttention", lambda n: n(3, 2), "__call__", {"x": _random(2, 3, 2)}),
    ("free_energy.attention.VectorSpinAttention", lambda n: n(2, 4), "__call__", {"x": _random(2, 4)}),
    ("free_energy.couplings.QueryKeyCouplings", lambda n: n(2, 4), "__call__", {"h": _random(2, 4)}),
):
    _unsolved = NOT_FOUND if _name.startswith("spin_transformer") else ""
    _add(_name, _method(lambda make=_make, n=_name: make(_new(n)), _called), _arguments, _unsolved)
_add(
    "spin_transformer.SpinTransformerModule.readout",
    _read,
    {"x": 0.2 * _random(3, 6), "effective_fields": _random(3, 6)},
)
_add("spin_transformer.SpinTransformerModule.path", _method(_carrier, "path"), {"x": 0.2 * _random(3, 6), "steps": 2})
_add(
    "spin_transformer.State.shifted",
    lambda effective_fields, **a: _new("spin_transformer.State")(effective_fields).shifted(**a),
    {"effective_fields": _random(3, 4), "drop": 1, "add": 2},
)
_add(
    "chapters.collectives.response.block.of_module",
    lambda x: _new("chapters.collectives.response.block.of_module")(_single(), x),
    {"x": _random(3, 6)},
    NOT_FOUND,
)
_add(
    "experiments.comparison.torch_blocks.seeded",
    lambda seed: _new("experiments.comparison.torch_blocks.seeded")(seed).__enter__(),
    {"seed": 0},
)
_add("experiments.comparison.transient.made", _smoke, {"key": KEY})
for _name, _arguments in {
    "phi": "t h", "gradient": "t h", "hessian": "t h", "start": "h", "saddle_point": "h t0 tol max_steps",
    "free_energy": "h t0", "free_energy_next_order": "h", "magnetizations": "h t0", "magnetizations_next_order": "h",
    "correlations": "h t0", "internal_energy": "h t0", "entropy": "h t0", "specific_heat": "h t0",
    "linear_response": "h direction t0", "susceptibilities": "h t0", "channel_mixing": "h t0", "field_gradient": "h t0",
    "log_prob": "h field_stiffness",
}.items():  # fmt: skip
    _add(
        f"free_energy.model.VectorSpinModel.{_name}",
        _method(_model, _name),
        {k: FREE[k] for k in _arguments.split()},
    )
for _name, _default, _arguments in (
    (
        "observation",
        "DIAGRAM",
        {"component": 0, "plane": 1, "tolerance": 1e-3, "num_bins": 20, "max_crossings": 4, "num_tail": 10},
    ),
    (
        "numerics",
        "MEASURED",
        {"steps": 40, "transient": 5, "num_exponents": 1, "num_blocks": 4, "orthonormalise_every": 2, "seed": 3},
    ),
):
    _add(
        f"self_attention.bifurcations.bifurcation.{_name}",
        lambda n=_name, d=_default, **a: _bifurcation(n, d, **a),
        _arguments,
        "crossings that were not there are NaN",
    )
# What is made: records check their fields.
for _name, _arguments in {
    "experiments.comparison.training.Recipe": {
        "num_updates": 3, "batch": 4, "allowed_skips": 0.1, "allowed_unsolved": 0.0,
    },
    "experiments.comparison.doubts.Doubt": {
        "row": "FNet", "depth": 1, "learning_rate": 0.1, "shrunk": 1.0, "task": "text",
    },
    "experiments.comparison.depths.Cell": {"row": "FNet", "task": "text", "depth": 2},
    "experiments.comparison.depths.Design": {"name": "one", "pilot": 0, "least": 2, "most": 3},
    "experiments.comparison.experiment.Plan": {"learning_rates": Opaque(lambda: (0.1,))},
    "experiments.comparison.headline.Design": {"name": "one", "num_updates": 3, "sample": True},
    "experiments.comparison.transient.Row": {"trained": "inf", "field": True, "beta": 1.0},
    "experiments.comparison.transient.Design": {"name": "one", "depth": 1, "learning_rate": 0.1, "beside_seeds": 0},
    "experiments.comparison.trained_heads.Sampling": {"replicas": 4, "steps": 3, "transient": 0, "windows": 1},
    "experiments.vector.calibration.Cell": {"u": 1.0, "beta": 1.0, "dim": 6, "draw": 0, "transient": 0},
    "experiments.vector.calibration.Noise": {"u": 1.0, "beta": 1.0, "dim": 6, "runs": 3},
    "experiments.vector.fidelity.Case": {
        "kind": "rows", "beta": 1.0, "scale": 0.0, "causal": False, "num_sites": 4, "dim": 6, "draw": 0, "field": 1.0,
    },
    "experiments.vector.shapes.Case": {"shape": "band", "beta": 1.0, "draw": 0, "num_sites": 4, "dim": 6},
    "experiments.vector.phases.Case": {"couplings": "normal", "scale": 0.5, "beta": 8.0, "field": 0.3},
    "experiments.entropy_production.World": {"num_sites": 3, "dim": 6, "steps": 2},
    "experiments.entropy_production.RecallTask": {"num_sites": 3, "dim": 6, "lag": 1, "depth": 2},
    "spin_transformer.Relax": {"tol": 1e-6, "max_steps": 5, "history": 0},
    "spin_transformer.Unroll": {"num_steps": 2},
    "spin_transformer.Rotary": {"base": 100.0},
    "adaptive_tap.priors.Gaussian": {"covariance": np.eye(2)},
    "adaptive_tap.priors.Spherical": {"radius": 1.5},
    "self_attention.network.Network": {
        "semantic_signs": np.ones((4, 2, 3), int), "positional_signs": np.ones((4, 2, 1), int), "context": 3,
        "epsilon": 0.02, "gamma": 10.0, "segment_weights": [1.0, 2.0, 1.0],
    },
    # Modules check the sizes that they are made of; what they do when they are called has an entry without "new".
    "spin_transformer.SpinTransformerModule.new": {"dim": 6, "num_heads": 2, "beta": 0.7, "key": KEY},
    "spin_transformer.SpinTransformer.new": {"depth": 2, "dim": 6, "num_heads": 2, "beta": 0.7, "key": KEY},
    "experiments.memory.MemoryModule.new": {"dim": 4, "hidden_dim": 5, "beta": 0.7, "key": KEY},
    "adaptive_tap.attention.AdaptiveTAPAttention.new": {"num_spins": 3, "dim": 2},
    "adaptive_tap.attention.MeanFieldAttention.new": {"num_spins": 3, "dim": 2},
    "adaptive_tap.couplings.sample": {"num_spins": 3, "dim": 2, "std": 0.1},
    "adaptive_tap.couplings.count_free": {"num_spins": 3, "dim": 2, "symmetry": Opaque(lambda: lambda J: J)},
    "free_energy.model.VectorSpinModel.new": {k: FREE[k] for k in ("num_spins", "dim", "beta", "couplings")},
    **{
        f"experiments.comparison.{name}": {"dim": 8, "num_heads": 2, "key": KEY}
        for name in ("blocks.Attention", "mixers.NormalizedAttention", "mixers.RectifiedAttention")
    },
    "experiments.comparison.blocks.FeedForward": {"dim": 8, "key": KEY},
    "experiments.comparison.blocks.Memory": {"dim": 8, "steps": 2, "key": KEY},
    "experiments.comparison.blocks.SpinBlock": {
        "dim": 8, "num_heads": 2, "key": KEY, "theory": _the("spinbook.spin_transformer.naive"),
        "dynamics": _made("spinbook.spin_transformer.Unroll", 1),
    },
    "experiments.comparison.blocks.require_sizes": {"dim": 8, "num_heads": 2},
    "experiments.comparison.mixers.EnergyBlock": {"dim": 8, "num_heads": 2, "steps": 3, "rate": 0.25, "key": KEY},
    "experiments.comparison.mixers.GatedMLP": {"num_sites": 5, "dim": 8, "key": KEY},
    "experiments.comparison.mixers.LocalPooling": {"grid": [2, 3]},
    "experiments.comparison.mixers.SiteMLP": {"num_sites": 5, "key": KEY},
    "experiments.comparison.torch_blocks.AdaptiveTAP": {"num_sites": 5, "dim": 8},
    "experiments.comparison.torch_blocks.FreeEnergy": {"num_sites": 5, "dim": 8},
    "experiments.comparison.torch_blocks.MeanField": {"num_sites": 5, "dim": 8, "tol": 1e-3, "max_steps": 5},
    "experiments.comparison.torch_blocks.Vanilla": {"dim": 8, "num_heads": 2},
    "experiments.comparison.transient.VanillaStack": {"depth": 2, "dim": 8, "num_heads": 2, "key": KEY},
}.items():  # fmt: skip
    _add(_name, _new(_name.removesuffix(".new")), _arguments)


def _cases() -> dict[str, Case]:
    found = dict(CLASSES)
    for group in GROUPS:
        module = importlib.import_module(_full(group.module))
        for name in group.names.split():
            function = getattr(module, name)
            call = function if group.wrap is None else group.wrap(function)
            parameters = inspect.signature(call).parameters.values()
            missing = [p.name for p in parameters if p.default is p.empty and p.name not in group.table and p.kind < 4]
            assert not missing, f"{group.module}.{name}: no argument in the table for {missing}"
            arguments = {p.name: group.table[p.name] for p in parameters if p.name in group.table}
            found[_full(f"{group.module}.{name}")] = Case(call, arguments, group.documented)
    return found


CASES = _cases()


def public_names() -> list[str]:
    """Functions, and classes that are more than a record, in the ``__all__`` of the module that defines them."""
    names = []
    paths = ((package, importlib.import_module(package).__path__) for package in PACKAGES)
    for info in (one for package, path in paths for one in pkgutil.walk_packages(path, f"{package}.")):
        if info.name.endswith("__main__") or (info.name.startswith("chapters.") and info.name not in NUMBERS):
            continue
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            defined_here = getattr(value, "__module__", None) == info.name
            record = isinstance(value, type) and (
                issubclass(value, tuple | Exception) or hasattr(value, "_is_protocol")
            )
            if defined_here and callable(value) and not isinstance(value, types.ModuleType) and not record:
                names.append(f"{info.name}.{name}")
    return names


def is_exempt(name: str) -> bool:
    """Whether the name, or a module that it is in, is in ``EXEMPT``."""
    parts = name.split(".")
    return any(".".join(parts[:k]) in EXEMPT for k in range(2, len(parts) + 1))
