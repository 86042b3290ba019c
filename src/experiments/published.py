"""The sweeps of the book by name, at the size of its pages, to be run anywhere.

A diagram of ``attention-dynamics`` is written as netCDF, which xarray reads; others as the JSON of their record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["SWEEPS", "Published", "Sizes", "chosen", "compute"]


class Sizes(NamedTuple):
    """How many values and steps: the parameters of the chapter, with the values of its pages."""

    num_betas: int = 4001
    transient: int = 100_000
    steps: int = 20_000
    num_networks: int = 100
    map_size: int = 120
    num_explored: int = 161


PUBLISHED = Sizes()
QUICK = Sizes(num_betas=41, transient=400, steps=200, num_networks=8, map_size=12, num_explored=7)
_FIELDS = ("values", "queries", "keys", "attention")


class Published(NamedTuple):
    """A sweep: ``compute(out, quick, ...)`` writes its files, and the results of its tasks, below the folder ``out``.

    It takes ``executor``, ``num_threads``, ``time_limit`` and ``progress`` as ``spinbook.sweep.iterate`` does.
    ``minutes``: the approximate time on one core. ``paper``: whether it is a diagram of the source itself.
    """

    name: str
    summary: str
    minutes: float
    compute: Callable[..., None]
    paper: bool = False


def _range(sizes: Sizes, low: float, high: float, number: str) -> Any:
    import numpy as np

    return np.linspace(low, high, getattr(sizes, number))


def _diagram(
    name: str, arguments: Callable[[Sizes], tuple[Any, Any, dict[str, Any]]], out: Path, quick: bool, **options: Any
) -> None:
    from spinbook.self_attention import bifurcation

    network, betas, numerics = arguments(QUICK if quick else PUBLISHED)
    diagram = bifurcation(network, betas, folder=Path(out) / name, **numerics, **options)
    empty = [dim for dim, size in diagram.sizes.items() if size == 0]
    diagram.drop_dims(empty).to_netcdf(Path(out) / f"{name}.nc", engine="scipy")


def _source(low: float, high: float, field: str, exponents: int) -> Callable[[Sizes], Any]:
    def arguments(sizes: Sizes) -> tuple[Any, Any, dict[str, Any]]:
        from spinbook.self_attention import DIAGRAM, paper_network

        options: dict[str, Any] = {"steps": sizes.steps, "transient": sizes.transient, "num_exponents": exponents}
        options |= {"observation": DIAGRAM._replace(field=field)}
        return paper_network(), _range(sizes, low, high, "num_betas"), options

    return arguments


def _exponents_only(sizes: Sizes) -> dict[str, Any]:
    from spinbook.self_attention import EXPONENTS_ONLY

    steps, transient = max(sizes.steps // 5, 100), max(sizes.transient // 20, 100)
    return {"steps": steps, "transient": transient, "num_exponents": 1, "observation": EXPONENTS_ONLY}


def _spectrum(sizes: Sizes) -> tuple[Any, Any, dict[str, Any]]:
    from spinbook.self_attention import paper_network

    options = {"steps": sizes.steps // 2, "transient": sizes.transient // 10, "num_exponents": 12}
    return paper_network(), _range(sizes, 1.0, 3.0, "num_explored"), options


def _map(sizes: Sizes) -> tuple[Any, Any, dict[str, Any]]:
    import numpy as np

    from spinbook.self_attention import paper_network

    gammas = np.geomspace(2.0, 1000.0, max(sizes.map_size // 2, 6))
    return paper_network(), _range(sizes, 0.5, 3.0, "map_size"), _exponents_only(sizes) | {"gammas": gammas}


def _positions(sizes: Sizes) -> tuple[Any, Any, dict[str, Any]]:
    from spinbook.self_attention import EXPONENTS_ONLY, paper_network

    options: dict[str, Any] = {"steps": sizes.steps // 4, "transient": sizes.transient // 10, "num_exponents": 1}
    options |= {"observation": EXPONENTS_ONLY}
    epsilons = [0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5]
    return paper_network(), _range(sizes, 1.0, 3.0, "num_explored"), options | {"epsilons": epsilons}


def _families(num_features: int, sizes: Sizes) -> tuple[Any, Any, dict[str, Any]]:
    import jax
    import numpy as np

    from spinbook.self_attention import EXPONENTS_ONLY, random_network

    number = sizes.num_networks if num_features == 3 else sizes.num_networks // 2
    keys = jax.random.split(jax.random.key(num_features), number)
    networks = [random_network(key, num_features=num_features) for key in keys]
    options: dict[str, Any] = {"steps": sizes.steps // 4, "transient": sizes.transient // 10, "num_exponents": 1}
    return networks, np.linspace(0.6, 3.0, 25), options | {"observation": EXPONENTS_ONLY, "start": None}


def _record(name: str, module: str, designs: tuple[str, str] | None, out: Path, quick: bool, **options: Any) -> None:
    made = import_module(module)
    if designs is None:
        made.compute(out, quick, **options)
    else:
        made.compare(getattr(made, designs[quick]), folder=Path(out) / name, **options)


def _diagrams() -> list[Published]:
    ranges = (("attention-dynamics-bifurcation", 0.0, 3.0, 1), ("attention-dynamics-bifurcation-zoom", 1.24, 1.28, 2))
    diagrams = []
    for name, low, high, exponents in ranges:
        for field in ("output_semantic", *_FIELDS):
            full = name if field == "output_semantic" else f"{name}-{field}"
            arguments = _source(low, high, field, exponents if field == "output_semantic" else 0)
            summary = f"{field} over beta from {low:g} to {high:g}, as in the paper's figure 3{'ab'[low > 0]}"
            diagrams.append(Published(full, summary, 1.0, partial(_diagram, full, arguments), paper=True))
    own: list[tuple[str, str, float, Callable[[Sizes], Any]]] = [
        ("attention-dynamics-dimension", "all 12 exponents", 0.5, _spectrum),
        ("attention-dynamics-map", "the largest exponent over both temperatures", 2.0, _map),
        ("attention-dynamics-positions", "the largest exponent over the weight of positions", 0.5, _positions),
        ("attention-dynamics-networks-3", "random networks of 3 features", 0.5, partial(_families, 3)),
        ("attention-dynamics-networks-5", "random networks of 5 features", 1.0, partial(_families, 5)),
    ]
    return diagrams + [Published(name, text, time, partial(_diagram, name, what)) for name, text, time, what in own]


def _recorded(
    name: str, minutes: float, module: str, summary: str, designs: tuple[str, str] | None = None
) -> Published:
    """A record that ``compute`` of this module makes, or ``compare`` with one of two designs, the second for a try."""
    return Published(name, summary, minutes, partial(_record, name, f"experiments.{module}", designs))


SWEEPS: tuple[Published, ...] = (
    *_diagrams(),
    _recorded(
        *("comparison", 60.0, "comparison.experiment"),
        "every module on every task, the record",
        ("FULL", "QUICK"),
    ),
    _recorded(
        *("comparison-longer", 15.0, "comparison.experiment"),
        "some modules on digits, five times as long",
        ("LONGER", "LONGER_QUICK"),
    ),
    _recorded(
        *("comparison-depths", 480.0, "comparison.depths"),
        "stacks of modules on images and text, with a pilot: the plan of the comparison",
        ("ALL", "SMOKE"),
    ),
    _recorded(
        *("comparison-depths-brief", 15.0, "comparison.depths"),
        "the same with few updates and seeds, to see that it works",
        ("BRIEF", "SMOKE"),
    ),
    _recorded(
        *("comparison-headline", 120.0, "comparison.headline"),
        "the network of adaptive TAP on MNIST, 20,000 updates, five seeds",
        ("ALL", "SMOKE"),
    ),
    _recorded(
        *("comparison-headline-more", 360.0, "comparison.headline"),
        "the same from ten further seeds, for a test of equivalence",
        ("MORE", "SMOKE"),
    ),
    _recorded(
        *("comparison-headline-exact", 30.0, "comparison.headline"),
        "the same from one seed, with the exact gradient of the steady state",
        ("EXACT", "EXACT_SMOKE"),
    ),
    _recorded(
        *("nonequilibrium-transient", 330.0, "comparison.transient"),
        "language models of spins, trained and used with different numbers of updates: the plan of the transient",
        ("ALL", "SMOKE"),
    ),
    _recorded(
        *("nonequilibrium-heads", 10.0, "comparison.trained_heads"),
        "heads of two of these models against sampled spins; after nonequilibrium-transient, in its folder",
    ),
    _recorded(
        *("spin-transformers-fidelity", 6.0, "vector.fidelity"),
        "mean-field means against sampled spins with softmax couplings, the record",
    ),
    _recorded(
        *("nonequilibrium-calibration", 10.0, "vector.calibration"),
        "delayed correlations and entropy production of mean-field theory against sampled spins, the record",
    ),
    _recorded(
        *("attention-shapes", 10.0, "vector.shapes"),
        "delayed correlations of attention of many shapes, sampled and by three laws, the record",
    ),
)


def chosen(names: Sequence[str]) -> list[Published]:
    """The sweeps of these names, in the order of the list; ``paper`` means the paper's diagrams, ``all`` all sweeps.

    >>> len(chosen(["paper"])), [sweep.name for sweep in chosen(["comparison"])]
    (10, ['comparison'])
    """
    known = {"paper", "all", *(sweep.name for sweep in SWEEPS)}
    for name in names:
        if name not in known:
            raise ValueError(f"name: expected some of {', '.join(sorted(known))}, got {name}")
    return [sweep for sweep in SWEEPS if "all" in names or sweep.name in names or (sweep.paper and "paper" in names)]


def compute(
    names: Sequence[str],
    out: str | Path,
    *,
    quick: bool = False,
    executor: Executor | None = None,
    num_threads: int | None = None,
    time_limit: float | None = None,
    progress: bool = True,
) -> None:
    """Run these sweeps one after another; failures are reported at the end, after all others.

    Raises ``ValueError`` for a name that is not in the list, and ``ExceptionGroup`` of the failures.
    """
    import sys

    from tqdm.auto import tqdm

    problems = []
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    sweeps = chosen(names)
    for k, sweep in enumerate(sweeps):
        if progress:
            tqdm.write(f"{sweep.name} ({k + 1} of {len(sweeps)}): {sweep.summary}", file=sys.stderr)
        try:
            sweep.compute(
                folder,
                quick,
                executor=executor,
                num_threads=num_threads,
                time_limit=time_limit,
                progress=progress,
            )
        except ExceptionGroup as error:
            error.add_note(f"sweep {sweep.name}")
            problems.append(error)
    if problems:
        told = "; ".join(f"{problem.__notes__[-1]}: {problem.message}" for problem in problems)
        raise ExceptionGroup(f"{len(problems)} of {len(sweeps)} sweeps are not complete: {told}", problems)
