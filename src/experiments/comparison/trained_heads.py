"""Heads of a trained language model of spins, frozen on a text: mean-field proxies against sampled spins.

On a window of the text every head of a layer is a system of its own: couplings that a softmax made of what was learned,
and the fields that act on its spins. Both are frozen, the parallel dynamics is sampled as in ``vector.fidelity``, and
what mean-field theory says of delayed correlations and of irreversibility is held against the samples. Under a causal
mask the first site couples to itself alone, so that errors are also given without it.

``python -m experiments run nonequilibrium-heads --out FOLDER`` takes the weights that ``nonequilibrium-transient``
left in the same folder, and writes ``heads.json.gz``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from experiments import designs, records
from experiments.comparison import transient
from experiments.comparison.transient import Design, LanguageModel, Row
from experiments.vector import fidelity
from experiments.vector.fidelity import forgotten, jackknife, squared_error
from spinbook import sphere, sweep, validate
from spinbook.annotations import Float
from spinbook.entropy_production import vector_delayed_correlations, vector_mean_field
from spinbook.precision import enable_x64
from spinbook.spin_transformer import Relax, SpinTransformer, SpinTransformerModule, Unroll
from spinbook.vector import mean_field

__all__ = [
    "ROWS",
    "Errors",
    "Frozen",
    "Sampling",
    "compare",
    "compute",
    "errors",
    "frozen",
    "measure",
]

ROWS = (Row("1"), Row("inf"))
"""The models whose heads are sampled, both from the first seed."""
_TRANSIENT_FOLDER, _ARTIFACT = "nonequilibrium-transient", "heads.json.gz"


class Frozen(NamedTuple):
    """The heads of one layer on one window: ``couplings`` (H, N, N) and the ``fields`` (H, N, d) of their spins."""

    couplings: Float[np.ndarray, "H N N"]
    fields: Float[np.ndarray, "H N d"]
    beta: float


@designs.record(transient=validate.count)
class Sampling(NamedTuple):
    """Replicas of each half and their steps, after ``transient`` steps that do not count; ``windows`` of the text."""

    replicas: int = 32
    steps: int = 60
    transient: int = 30
    windows: int = 8


class _Task(NamedTuple):
    row: Row
    layer: int
    window: int


def frozen(model: LanguageModel, characters: np.ndarray, use: str) -> list[Frozen]:
    """Every layer of the model on these characters (N,), under the inputs that it has when used with ``use`` updates.

    >>> model = transient.made(Row("1"), transient.SMOKE, jax.random.key(0))
    >>> layer = frozen(model, np.arange(6), "1")[0]
    >>> layer.couplings.shape, layer.fields.shape
    ((2, 6, 6), (2, 6, 8))
    """
    if not isinstance(model.stack, SpinTransformer):
        raise ValueError(f"model: expected layers of spins, got {type(model.stack).__name__}")
    stack = model.stack.under(Relax() if use == "inf" else Unroll(int(use)))
    arrays, rest = eqx.partition(stack.modules, eqx.is_array)
    mask = np.tril(np.ones((len(characters),) * 2, bool))
    x, found = model.bottom(jnp.asarray(characters)), []
    for k in range(stack.depth):
        module: SpinTransformerModule = eqx.combine(jax.tree.map(lambda a, k=k: a[k], arrays), rest)
        fields = np.asarray(module.fields(x, mask), float).reshape(len(x), module.num_heads, -1)
        J = np.asarray(module.couplings(x, mask), float)
        # In single precision rows sum to one to seven digits only.
        J /= J.sum(axis=-1, keepdims=True)
        found.append(Frozen(J, fields.transpose(1, 0, 2), float(module.beta)))
        x = module.steady_state(x, mask).value
    return found


def measure(layer: Frozen, sampling: Sampling, seed: int) -> dict[str, np.ndarray]:
    """What sampling says of the heads of a layer; the first axis of everything is that of the heads.

    ``sigma`` (H, 2): the irreversibility of the sampled spins, beta sum_il (J_il - J_li) D_il, and its standard error.
    ``proxy`` (H, 2): that of naive mean-field theory in its steady state, at large D and exactly. ``delayed`` (H, 2)
    and ``delayed_rest`` (H, 2): the squared relative error of the mean-field D with the exact response, as a product of
    independent halves, and its standard error; the latter without the first site, which hears of itself alone.
    ``predicted`` (H,): the relative error r / sqrt(q + 2 r + r^2) that a collective mode would make; ``chi``, ``q`` and
    ``n_eff`` (H,), its numbers and the mean of 1 / sum_j J_ij^2; ``forgotten`` (H,): the squared distance of the
    halves' means over what their scatter lets expect, far above 1 where a half remembers its start. NaN where no steady
    state was found.
    """
    found: dict[str, list[Any]] = {}
    with enable_x64(True):
        for head, (J, x) in enumerate(zip(layer.couplings, layer.fields, strict=True)):
            key = jax.random.fold_in(jax.random.key(seed), head)
            for name, value in _measured(J, x, layer.beta, sampling, key).items():
                found.setdefault(name, []).append(value)
    return {name: np.array(values, float) for name, values in found.items()}


def _measured(J: np.ndarray, x: np.ndarray, beta: float, sampling: Sampling, key: Any) -> dict[str, Any]:
    sizes = {"replicas": sampling.replicas, "steps": sampling.steps, "transient": sampling.transient}
    halves = fidelity.sampled(key, jnp.asarray(J), jnp.asarray(x), beta=beta, delayed=True, **sizes)
    assert halves.delayed is not None
    means, delayed = (np.asarray(a, float) for a in (halves.means, halves.delayed))
    steady = mean_field.steady_state(J, x, beta=beta, step=mean_field.naive_step, max_steps=300)
    m = np.where(steady.converged, np.asarray(steady.value), np.nan)
    result: dict[str, Any] = {"n_eff": np.mean(1 / np.sum(J**2, axis=1))}

    def sigma(a: np.ndarray, b: np.ndarray) -> float:
        return float(beta * np.sum((J - J.T) * (a + b) / 2))

    result["sigma"] = jackknife(sigma, delayed)
    result["forgotten"] = forgotten(means)
    if np.isnan(m).any():
        return (
            result
            | dict.fromkeys(("predicted", "chi", "q"), np.nan)
            | dict.fromkeys(("proxy", "delayed", "delayed_rest"), (np.nan, np.nan))
        )
    theta = x + J @ m
    options: dict[str, Any] = {"beta": beta}
    responses = (sphere.large_d, sphere.exact)
    result["proxy"] = tuple(float(vector_mean_field(J, theta, theta, response=r, **options)) for r in responses)
    D = np.asarray(vector_delayed_correlations(J, theta, theta, response=sphere.exact, **options))

    for name, part in (("delayed", np.s_[:, :]), ("delayed_rest", np.s_[1:, 1:])):
        result[name] = jackknife(squared_error(D[part]), delayed[:, :, *part])
    chi, r, q = mean_field.collective_mode(J, m, beta=beta)
    return result | {"chi": chi, "q": q, "predicted": r / np.sqrt(q + 2 * r + r**2)}


@cache
def _model(row: Row, design: Design, folder: Path | None) -> LanguageModel:
    """The trained one, or without a folder one that was never trained."""
    if folder is None:
        with enable_x64(False), jax.numpy_dtype_promotion("standard"):
            return transient.made(row, design, jax.random.key(1))
    return transient.restored(row, design, folder / f"weights-{row.trained}-{row.beta:g}.npz")


def _sampled(task: _Task, design: Design, sampling: Sampling, folder: Path | None) -> dict[str, np.ndarray]:
    window = transient.text_of(design).held_out.reshape(-1, design.length + 1)[task.window, :-1]
    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        layer = frozen(_model(task.row, design, folder), window, task.row.own_use)[task.layer]
    return measure(layer, sampling, seed=1000 * task.layer + task.window)


def compare(
    design: Design,
    sampling: Sampling,
    *,
    weights: Path | None,
    folder: Path | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The record: for each row the measurements of ``measure`` by window, layer and head.

    ``weights``: the folder of ``transient.compare``; None stands for models that were never trained. The record is
    also written to ``heads.json.gz`` in ``folder``, and each layer on each window is kept there. Raises
    ``FileNotFoundError`` where weights are missing, before anything is sampled.
    """
    files = [weights / f"weights-{row.trained}-{row.beta:g}.npz" for row in ROWS] if weights is not None else []
    for file in files:
        if not file.is_file():
            raise FileNotFoundError(
                f"weights: expected {file.name} in {file.parent}; "
                "python -m experiments run nonequilibrium-transient with the same --out makes it"
            )
    places = [(layer, window) for layer in range(design.depth) for window in range(sampling.windows)]
    tasks = [_Task(row, *place) for row in ROWS for place in places]
    stamps = [sweep.fingerprint(np.frombuffer(file.read_bytes(), np.uint8)) for file in files]
    growing = records.Growing.at(folder, _ARTIFACT)
    run, place = partial(_sampled, design=design, sampling=sampling, folder=weights), growing.beside("layers")
    described = stamps, list(sampling), design.name
    found = dict(records.runs(run, tasks, *described, folder=place, label="layers", **options))
    rows = {}
    for row in ROWS:
        table = [
            [found[_Task(row, layer, window)] for layer in range(design.depth)] for window in range(sampling.windows)
        ]
        names = table[0][0]
        rows[row.name] = {name: records.numbers([[cell[name] for cell in line] for line in table], 4) for name in names}
    record = {"format": 1, "design": design.name, "trained": weights is not None, "sampling": sampling._asdict()}
    return growing.write(record | {"weights": stamps, "rows": rows})


class Errors(NamedTuple):
    """By layer and head, over all windows. ``sigma``: proxy over sampled minus 1, with a standard error over windows.

    ``delayed`` and ``delayed_rest``: the relative errors of the mean-field delayed correlations, with all sites and
    without the first; ``predicted``: what a collective mode would make. ``n_eff`` and ``chi``: means over windows.
    """

    sigma: Float[np.ndarray, "L H"]
    sigma_error: Float[np.ndarray, "L H"]
    delayed: Float[np.ndarray, "L H"]
    delayed_rest: Float[np.ndarray, "L H"]
    predicted: Float[np.ndarray, "L H"]
    n_eff: Float[np.ndarray, "L H"]
    chi: Float[np.ndarray, "L H"]

    def within(self, tolerance: float, name: str = "sigma") -> float:
        """The part of the heads whose error ``name`` is at most ``tolerance``; one without a number is not."""
        return float(np.mean(np.abs(getattr(self, name)) <= tolerance))


def errors(record: Mapping[str, Any], row: Row, *, exact: bool = True) -> Errors:
    """What a record says of the heads of a row; of the entropy production with the exact response or that at large D.

    A ratio is that of sums over windows, whose standard error is that of the residuals proxy - ratio x sampled; squared
    errors are averaged before the root is taken, of nothing less than zero.
    """
    data = {name: np.array(values, float) for name, values in record["rows"][row.name].items()}
    sampled, proxy = data["sigma"][..., 0], data["proxy"][..., int(exact)]
    ratio = proxy.sum(axis=0) / sampled.sum(axis=0)
    windows = len(sampled)
    scatter = np.std(proxy - ratio * sampled, axis=0, ddof=1) / np.sqrt(windows) / sampled.mean(axis=0)
    roots = (np.sqrt(np.maximum(data[name][..., 0].mean(axis=0), 0)) for name in ("delayed", "delayed_rest"))
    rest = (data[name].mean(axis=0) for name in ("predicted", "n_eff", "chi"))
    return Errors(ratio - 1, scatter, *roots, *rest)


def compute(out: Path, quick: bool, **options: Any) -> None:
    """All heads of both models below ``out``; with ``quick`` those of a small model that was never trained."""
    folder = Path(out) / "nonequilibrium-heads"
    if quick:
        small = Sampling(replicas=8, steps=4, transient=2, windows=2)
        compare(transient.SMOKE, small, weights=None, folder=folder, **options)
    else:
        compare(transient.ALL, Sampling(), weights=Path(out) / _TRANSIENT_FOLDER, folder=folder, **options)
