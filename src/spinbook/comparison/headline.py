"""The example network of adaptive TAP on MNIST for as long as its source trained it: runs and record. Judges nothing.

Source: Bal (2021), "Simple example: MNIST": 26 thousand parameters, test accuracy "hovering around 99.1%". Twenty
epochs of a thousand updates are fixed beforehand, and what counts is the accuracy after the last of them, the mean over
seeds: the best of many looks at the test set would be too high.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from spinbook import sweep
from spinbook.adaptive_tap import network
from spinbook.comparison import records, torch_blocks
from spinbook.datasets import mnist

__all__ = ["ALL", "FRAMES", "SMOKE", "Design", "compare", "images", "run_one"]

FRAMES = (0, 10, 30, 100, 300, *range(1000, 20001, 1000))
"""Updates after which the test set and the couplings are looked at."""

_ARTIFACT = "headline.json.gz"


class Design(NamedTuple):
    """``seeds``, updates, and after which numbers of them the test set and the couplings are looked at."""

    name: str
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    num_updates: int = 20000
    frames: tuple[int, ...] = FRAMES
    sample: bool = False


ALL = Design("all")
SMOKE = Design("smoke", seeds=(1, 2), num_updates=4, frames=(0, 2, 4), sample=True)


def images(found: mnist.Images) -> network.Images:
    """The images as the network takes them: of zero mean and unit variance over the training set.

    >>> images(mnist.sample()).train.shape
    torch.Size([200, 1, 28, 28])
    """
    train, test = (torch.from_numpy(part.astype(np.float32))[:, None] for part in (found.train, found.test))
    mean, spread = train.mean(), train.std()
    labels = (torch.from_numpy(part.astype(np.int64)) for part in (found.train_labels, found.test_labels))
    train_labels, test_labels = labels
    return network.Images((train - mean) / spread, train_labels, (test - mean) / spread, test_labels)


@cache
def _images(sample: bool) -> network.Images:
    return images(mnist.sample() if sample else mnist.load())


@cache
def _num_parameters() -> int:
    with torch_blocks.seeded(0):
        return network.count_parameters(network.DigitNetwork())


def run_one(seed: int, design: Design) -> dict[str, np.ndarray]:
    """One training from this seed, which sets the start and the order of the images.

    ``frames``, and after each ``accuracy`` and ``loss`` on the test set and ``coupling_norms`` |J_ij|, i unlike j,
    row by row, since what j does to i need not be what i does to j; ``train_loss`` of each hundred updates;
    ``seconds`` and ``processor_seconds`` per update, the tests between them included; ``num_steps`` of the solver,
    the mean over updates of that of the slowest example, and the part of the training examples ``unresolved``.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = network.Images(*(part.to(device) for part in _images(design.sample)))
    with torch_blocks.seeded(seed):
        net = network.DigitNetwork().to(device)
    begin, worked = time.perf_counter(), time.process_time()
    training = network.train(
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
        "accuracy": training.accuracies.cpu().numpy(),
        "loss": training.losses.cpu().numpy(),
        "coupling_norms": training.coupling_norms.cpu().numpy()[:, apart],
        "train_loss": losses[: len(losses) // size * size].reshape(-1, size).mean(axis=1),
        "seconds": np.array(seconds),
        "processor_seconds": np.array(worked),
        "num_steps": np.array(float(training.num_steps.float().mean())),
        "unresolved": np.array(training.num_unresolved / (design.num_updates * 60)),
    }


def compare(
    design: Design = SMOKE,
    *,
    folder: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    time_limit: float | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """The record, which is also written to ``headline.json.gz`` in ``folder``, anew with each seed that is done.

    Called again with the same folder it trains the seeds that are missing. Raises ``FileNotFoundError`` where MNIST is
    missing.
    """
    _images(design.sample)
    parameters = _num_parameters()
    place = None if folder is None else Path(folder)
    begin, code, found, record = time.perf_counter(), records.commit(), {}, {}
    for k, arrays in sweep.iterate(
        partial(run_one, design=design),
        design.seeds,
        identity=sweep.fingerprint(list(design), sweep.code_version(run_one)),
        folder=None if place is None else place / "runs",
        executor=executor,
        num_threads=1 if executor is None else None,
        time_limit=time_limit,
        progress=progress,
        label="seeds",
    ):
        found[design.seeds[k]] = arrays
        record = {
            "format": 1,
            "complete": len(found) == len(design.seeds),
            "design": design._asdict(),
            "parameters": parameters,
            "data": {file.name: file.sha256 for file in mnist.FILES} if not design.sample else {},
            "runs": [_entry(seed, found[seed]) for seed in sorted(found)],
        } | records.circumstances(begin, code)
        if place is not None:
            records.write(place / _ARTIFACT, record)
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
