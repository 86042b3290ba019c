"""The example network of adaptive TAP on MNIST, as long as its source trained it: the headline of the plan.

The plan is ``records/comparison/plan.md``. The records were made before, and can be remade at, the tag ``before-2.0``:
``git checkout before-2.0``, then ``python -m experiments run comparison-headline --out FOLDER`` for five seeds (two
hours on two cores), ``comparison-headline-more`` for the ten that count, and ``comparison-headline-exact`` for the one
with the exact gradient and without the last update, with the images of ``book/data.md``.

This script trains the ten seeds, or with ``--brief`` two for four updates on the sample of the images. What is done is
kept in the folder, and not done again.
"""

import time
from functools import cache, partial

import numpy as np
import torch

from experiments import digit_network, records
from experiments.comparison import torch_blocks
from experiments.datasets import mnist
from spinbook import sweep

FULL = {"name": "more", "seeds": list(range(6, 16)), "num_updates": 20_000}
FULL |= {"frames": [0, 10, 30, 100, 300, *range(1000, 20_001, 1000)], "sample": False, "exact": False}
BRIEF = FULL | {"name": "brief", "seeds": [1, 2], "num_updates": 4, "frames": [0, 2, 4], "sample": True}


@cache
def images(sample):
    """Of zero mean and unit variance over the training set."""
    found = mnist.sample() if sample else mnist.load()
    train, test = (torch.from_numpy(part.astype(np.float32))[:, None] for part in (found.train, found.test))
    labels = [torch.from_numpy(part.astype(np.int64)) for part in (found.train_labels, found.test_labels)]
    mean, spread = train.mean(), train.std()
    return digit_network.Images((train - mean) / spread, labels[0], (test - mean) / spread, labels[1])


def one(seed, design):
    """One training from this seed, which sets the start and the order of the images."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = digit_network.Images(*(part.to(device) for part in images(design["sample"])))
    with torch_blocks.seeded(seed):
        net = digit_network.DigitNetwork().to(device)
    begin, worked, updates = time.perf_counter(), time.process_time(), design["num_updates"]
    generator = torch.Generator().manual_seed(seed)
    made = digit_network.train(net, data, num_updates=updates, frames=design["frames"], generator=generator)
    # Norms of all ordered pairs of sites: what j does to i need not be what i does to j.
    apart = ~np.eye(made.coupling_norms.shape[-1], dtype=bool)
    losses, size = made.train_losses.cpu().numpy(), min(100, updates)
    return {
        "frames": made.frames.numpy(),
        "accuracy": made.accuracies.cpu().numpy(),
        "loss": made.losses.cpu().numpy(),
        "coupling_norms": made.coupling_norms.cpu().numpy()[:, apart],
        "train_loss": losses[: updates // size * size].reshape(-1, size).mean(axis=1),
        "seconds": np.array((time.perf_counter() - begin) / updates),
        "processor_seconds": np.array((time.process_time() - worked) / updates),
        "num_steps": np.array(float(made.num_steps.float().mean())),
        "unresolved": np.array(made.num_unresolved / (updates * 60)),
    }


def main(brief, out):
    design, begin = BRIEF if brief else FULL, time.perf_counter()
    identity, seeds = str(design), design["seeds"]
    train = partial(one, design=design)
    found = dict(sweep.iterate(train, seeds, identity=identity, folder=out / "runs", num_threads=1))
    digits = {"frames": 6, "accuracy": 6, "loss": 6}
    runs = [
        {"seed": seed} | {name: records.numbers(value, digits.get(name, 4)) for name, value in found[k].items()}
        for k, seed in enumerate(seeds)
    ]
    content = {
        "format": 1,
        "complete": True,
        "design": design,
        "parameters": digit_network.count_parameters(digit_network.DigitNetwork()),
        "data": {} if design["sample"] else {file.name: file.sha256 for file in mnist.FILES},
        "runs": runs,
    }
    records.write(out / "headline-more.json.gz", content | records.circumstances(begin, records.commit()))


if __name__ == "__main__":
    given = records.arguments(__doc__)
    main(given.brief, given.out)
