"""The example network of adaptive TAP on MNIST for as long as its source trained it: runs and record.

Source: Bal (2021), "Simple example: MNIST": 26 thousand parameters, test accuracy "hovering around 99.1%". Twenty
epochs of a thousand updates are fixed beforehand, and what counts is the accuracy after the last of them, the mean over
seeds: the best of many looks at the test set would be too high.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from experiments import designs, digit_network, records
from experiments.comparison import judging, torch_blocks
from experiments.datasets import mnist
from spinbook import validate
from spinbook.adaptive_tap.attention import EquilibriumAttention

__all__ = [
    "ALL",
    "EXACT",
    "EXACT_SMOKE",
    "FRAMES",
    "HALF",
    "LAST",
    "MARGIN",
    "MORE",
    "PUBLISHED",
    "SMOKE",
    "Design",
    "accuracies",
    "compare",
    "hovering",
    "images",
    "organised",
    "pattern",
    "recorded",
    "run_one",
]

FRAMES = (0, 10, 30, 100, 300, *range(1000, 20001, 1000))
"""Updates after which the test set and the couplings are looked at."""

LAST, HALF = FRAMES[-5:], FRAMES[-15:-10]
"""The looks whose mean accuracy is asked for, after the epochs 16 to 20, and those at half of the training, 6 to 10."""
MARGIN = 0.001
"""How far that mean may be from the published accuracy to count as the same."""

_ARTIFACT, _MORE = "headline.json.gz", "headline-more.json.gz"
_SAMPLE, _EXACT = "headline-sample.json.gz", "headline-exact.json.gz"
PUBLISHED = 0.991
"""The accuracy on the test set of 10,000 images that the source reports."""


@designs.record(frames=lambda values, name: [validate.count(value, name) for value in values])
class Design(NamedTuple):
    """``seeds``, updates, and after which numbers of them the test set and the couplings are looked at.

    ``exact``: not by the rules of the source's code, but to an absolute residual, at the state that was found and not
    one update later, and with the exact gradient of the fixed point where the iteration for it fails.
    """

    name: str
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    num_updates: int = 20000
    frames: tuple[int, ...] = FRAMES
    sample: bool = False
    exact: bool = False


ALL = Design("all")
MORE = Design("more", seeds=tuple(range(6, 16)))
EXACT = Design("exact gradient", seeds=(1,), exact=True)
SMOKE = Design("smoke", seeds=(1, 2), num_updates=4, frames=(0, 2, 4), sample=True)
EXACT_SMOKE = SMOKE._replace(exact=True)


def images(found: mnist.Images) -> digit_network.Images:
    """The images as the network takes them: of zero mean and unit variance over the training set.

    >>> images(mnist.sample()).train.shape
    torch.Size([200, 1, 28, 28])
    """
    train, test = (torch.from_numpy(part.astype(np.float32))[:, None] for part in (found.train, found.test))
    mean, spread = train.mean(), train.std()
    labels = (torch.from_numpy(part.astype(np.int64)) for part in (found.train_labels, found.test_labels))
    train_labels, test_labels = labels
    return digit_network.Images((train - mean) / spread, train_labels, (test - mean) / spread, test_labels)


@cache
def _images(sample: bool) -> digit_network.Images:
    return images(mnist.sample() if sample else mnist.load())


@cache
def _num_parameters() -> int:
    with torch_blocks.seeded(0):
        return digit_network.count_parameters(digit_network.DigitNetwork())


def run_one(seed: int, design: Design) -> dict[str, np.ndarray]:
    """One training from this seed, which sets the start and the order of the images.

    ``frames``, and after each ``accuracy`` and ``loss`` on the test set and ``coupling_norms`` |J_ij|, i unlike j,
    row by row, since what j does to i need not be what i does to j; ``train_loss`` of each hundred updates;
    ``seconds`` and ``processor_seconds`` per update, the tests between them included; ``num_steps`` of the solver,
    the mean over updates of that of the slowest example, and the part of the training examples ``unresolved``.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = digit_network.Images(*(part.to(device) for part in _images(design.sample)))
    with torch_blocks.seeded(seed):
        net = digit_network.DigitNetwork().to(device)
    if design.exact and isinstance(net.attention, EquilibriumAttention):
        net.attention.relative, net.attention.eliminate, net.attention.last_update = False, True, False
    begin, worked = time.perf_counter(), time.process_time()
    training = digit_network.train(
        net,
        data,
        num_updates=design.num_updates,
        frames=design.frames,
        generator=torch.Generator().manual_seed(seed),
    )
    seconds = (time.perf_counter() - begin) / design.num_updates
    worked = (time.process_time() - worked) / design.num_updates
    apart = ~np.eye(training.coupling_norms.shape[-1], dtype=bool)
    losses = training.train_losses.cpu().numpy()
    size = min(100, len(losses))
    return {
        "frames": training.frames.numpy(),
        "loss": training.losses.cpu().numpy(),
        "accuracy": training.accuracies.cpu().numpy(),
        "coupling_norms": training.coupling_norms.cpu().numpy()[:, apart],
        "train_loss": losses[: len(losses) // size * size].reshape(-1, size).mean(axis=1),
        "seconds": np.array(seconds),
        "processor_seconds": np.array(worked),
        "num_steps": np.array(float(training.num_steps.float().mean())),
        "unresolved": np.array(training.num_unresolved / (design.num_updates * 60)),
    }


def compare(design: Design = SMOKE, *, folder: str | os.PathLike[str] | None = None, **options: Any) -> dict[str, Any]:
    """The record, which is also written to ``headline.json.gz`` in ``folder``, anew with each seed that is done.

    That of ``MORE`` is ``headline-more.json.gz``, and that of exact gradients ``headline-exact.json.gz``.

    Called again with the same folder it trains the seeds that are missing. Options are those of
    ``spinbook.sweep.iterate``. Raises ``FileNotFoundError`` where MNIST is missing.
    """
    _images(design.sample)
    parameters, found, record = _num_parameters(), {}, {}
    growing = records.Growing.at(folder, _EXACT if design.exact else _MORE if design.name == MORE.name else _ARTIFACT)
    train, place = partial(run_one, design=design), growing.beside("runs")
    for seed, arrays in records.runs(train, design.seeds, list(design), folder=place, label="seeds", **options):
        found[seed] = arrays
        record = growing.write(
            {
                "format": 1,
                "complete": len(found) == len(design.seeds),
                "design": design._asdict(),
                "parameters": parameters,
                "data": {file.name: file.sha256 for file in mnist.FILES} if not design.sample else {},
                "runs": [_entry(seed, found[seed]) for seed in sorted(found)],
            }
        )
    return record


def _entry(seed: int, arrays: Any) -> dict[str, Any]:
    names: Sequence[str] = (
        *("accuracy", "loss", "coupling_norms", "train_loss"),
        *("seconds", "processor_seconds", "num_steps", "unresolved"),
    )
    digits = {"accuracy": 6, "loss": 6}
    return {"seed": seed, "frames": arrays["frames"].tolist()} | {
        name: records.numbers(arrays[name], digits.get(name, 4)) for name in names
    }


def recorded(*, sample: bool = False, exact: bool = False, more: bool = False) -> dict[str, Any]:
    """The trainings as they were run, complete or not, from the file beside this module.

    ``sample``: those of ``SMOKE``, whose images come with the library, so that they can be made again anywhere.
    ``exact``: those of ``EXACT``. ``more``: those of ``MORE``.

    >>> recorded(sample=True)["design"]["num_updates"]
    4
    """
    name = _SAMPLE if sample else _EXACT if exact else _MORE if more else _ARTIFACT
    return records.beside("experiments.comparison", name)


def accuracies(record: Mapping[str, Any], *, update: int | None = None) -> Float[np.ndarray, " runs"]:
    """The accuracy of each run after ``update``, the last unless given.

    Raises ``ValueError`` for an update after which nobody looked.

    >>> accuracies(recorded(sample=True)).shape
    (2,)
    """
    return np.array([run["accuracy"][_look(run, update)] for run in record["runs"]])


def _look(run: Mapping[str, Any], update: int | None) -> int:
    looks = list(run["frames"])
    if update is None:
        return len(looks) - 1
    if update not in looks:
        raise ValueError(f"update: expected one of {looks}, got {update!r}")
    return looks.index(update)


def hovering(record: Mapping[str, Any], looks: Sequence[int] = LAST) -> tuple[judging.Paired, judging.Verdict]:
    """Mean accuracy over ``looks`` minus the published one, and whether it is within ``MARGIN``: two one-sided tests.

    The source was tested on the same images, so that their choice adds nothing: only the scatter over seeds counts.
    Raises ``ValueError`` as ``accuracies``, and for fewer than two runs.

    >>> difference, verdict = hovering(recorded())
    >>> difference.num_pairs, verdict.decision
    (5, 'undecided')
    """
    means = np.mean([accuracies(record, update=look) for look in looks], axis=0)
    return judging.paired(means, np.full(len(means), PUBLISHED)), judging.equivalent(means - PUBLISHED, MARGIN)


def organised(record: Mapping[str, Any]) -> Float[np.ndarray, "runs looks"]:
    """1 - |n(k) - n(K)| / |n(0) - n(K)|: how much of the change of the couplings is made after k of K updates.

    n(k) are the norms |J_ij| of the couplings of all ordered pairs of sites after k updates, and the distance is that
    of vectors. It is 0 at the start and 1 at the end, and negative where the norms are farther from their end than
    they were. Raises ``ValueError`` if nothing changed.

    >>> organised(recorded(sample=True))[:, [0, -1]].tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    norms = np.array([run["coupling_norms"] for run in record["runs"]], float)
    left = np.linalg.norm(norms - norms[:, -1:], axis=-1)
    if not left[:, 0].all():
        raise ValueError("record: expected couplings that change, got the same norms at the start and the end")
    return 1 - left / left[:, :1]


def pattern(record: Mapping[str, Any]) -> Float[np.ndarray, "runs looks"]:
    """The correlation coefficient, over ordered pairs of sites, of the norms |J_ij| after k updates with the last ones.

    It says whether the same couplings are the long ones, and nothing of how long they are. Raises ``ValueError`` where
    norms do not differ from each other.

    >>> [round(float(r), 3) for r in pattern(recorded(sample=True))[:, -1]]
    [1.0, 1.0]
    """
    norms = np.array([run["coupling_norms"] for run in record["runs"]], float)
    apart = norms - norms.mean(axis=-1, keepdims=True)
    lengths = np.linalg.norm(apart, axis=-1)
    if not lengths.all():
        raise ValueError("record: expected norms that differ between pairs of sites, got the same for all")
    return (apart * apart[:, -1:]).sum(axis=-1) / (lengths * lengths[:, -1:])
