"""The example network of the source for images of digits, and its training.

A convolution cuts the image into 16 patches, each the field of one spin. A class token, the same for all images, is the
field of a further spin. The class is read off the response of this spin alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from spinbook import validate
from spinbook.adaptive_tap import couplings as coupling_tensors
from spinbook.adaptive_tap.attention import (
    AdaptiveTAPAttention,
    CouplingTensor,
    EquilibriumAttention,
    MeanFieldAttention,
)

_NUM_PATCHES, _NUM_CLASSES = 16, 10
_SIDE = 28


class Images(NamedTuple):
    """``train`` and ``test`` (images, 1, 28, 28), of zero mean and unit variance over the training set, and labels."""

    train: Float[Tensor, "num_train 1 28 28"]
    train_labels: Int[Tensor, " num_train"]
    test: Float[Tensor, "num_test 1 28 28"]
    test_labels: Int[Tensor, " num_test"]


def load() -> Images:
    """The 1797 images of 8 x 8 of scikit-learn, enlarged to 28 x 28 by bilinear interpolation; a fifth is for testing.

    >>> images = load()
    >>> images.train.shape, images.test_labels.shape
    (torch.Size([1438, 1, 28, 28]), torch.Size([359]))
    """
    from sklearn.datasets import load_digits

    bundled = load_digits()
    small, labels = torch.tensor(bundled.images, dtype=torch.float32)[:, None], torch.tensor(bundled.target)
    square = nn.functional.interpolate(small, size=(_SIDE, _SIDE), mode="bilinear", align_corners=False)
    order = torch.randperm(len(square), generator=torch.Generator().manual_seed(0))
    held_out = len(square) // 5
    known, unseen = order[:-held_out], order[-held_out:]
    mean, std = square[known].mean(), square[known].std()
    square = (square - mean) / std
    return Images(square[known], labels[known], square[unseen], labels[unseen])


class Answers(NamedTuple):
    """``logits`` (batch, 10); whether the response behind them converged, and in how many steps."""

    logits: Float[Tensor, "batch 10"]
    converged: Bool[Tensor, " batch"]
    num_steps: Int[Tensor, " batch"]


class DigitNetwork(nn.Module):
    """logits = final(S_0), S the response of 17 spins to the class token and the 16 patches of an image.

    Two 3 x 3 convolutions with ``dim_conv`` channels, each followed by a rectifier and 3 x 3 max pooling with stride
    2, take 28 x 28 pixels to 4 x 4 patches, and a linear map takes these to ``dim`` components. ``attention`` is the
    module of the 17 spins: ``MeanFieldAttention`` with internally symmetric couplings, to a residual of 1e-4 of the
    largest entry in at most 40 steps, with the gradient that 40 steps give, and in training one update more, as in the
    source's code, unless given. Source: "Simple example: MNIST".

    >>> DigitNetwork()(torch.zeros(5, 1, 28, 28)).shape
    torch.Size([5, 10])
    """

    def __init__(self, dim: int = 10, dim_conv: int = 32, *, attention: nn.Module | None = None) -> None:
        super().__init__()
        dim = validate.count(dim, "dim", minimum=1)
        channels = validate.count(dim_conv, "dim_conv", minimum=1)
        self.features = nn.Sequential(
            nn.Conv2d(1, channels, kernel_size=3),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2),
            nn.Conv2d(channels, channels, kernel_size=3),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2),
        )
        self.to_fields = nn.Linear(channels, dim)
        self.class_token = nn.Parameter(torch.randn(1, 1, dim))
        if attention is None:
            symmetry = coupling_tensors.symmetrize_components
            attention = MeanFieldAttention(
                _NUM_PATCHES + 1,
                dim,
                symmetry=symmetry,
                tol=1e-4,
                relative=True,
                eliminate=False,
                last_update=True,
                max_steps=40,
            )
        self.attention = attention
        self.final = nn.Linear(dim, _NUM_CLASSES)

    def fields(self, images: Float[Tensor, "batch 1 28 28"]) -> Float[Tensor, "batch 17 dim"]:
        """X: the class token, then the patches row by row.

        >>> DigitNetwork().fields(torch.zeros(5, 1, 28, 28)).shape
        torch.Size([5, 17, 10])
        """
        if images.ndim != 4 or images.shape[1:] != (1, _SIDE, _SIDE):
            raise ValueError(f"images: expected shape (batch, 1, 28, 28), got shape {tuple(images.shape)}")
        # Pooling on a CPU is ten times faster with channels innermost; these strides say so for a single channel, too.
        maps = self.features(images.squeeze(1)[..., None].movedim(-1, 1))
        patches = self.to_fields(maps.flatten(2).mT)
        return torch.cat([self.class_token.expand(len(images), -1, -1), patches], dim=1)

    def forward(self, images: Float[Tensor, "batch 1 28 28"]) -> Float[Tensor, "batch 10"]:
        """Logits. An example that does not converge keeps its best state; ``solve`` says which examples."""
        return self.solve(images).logits

    def solve(self, images: Float[Tensor, "batch 1 28 28"]) -> Answers:
        """Logits, with the evidence of the response from which they are read.

        The evidence is that of an ``EquilibriumAttention``. Other modules raise if they fail, and count as converged in
        no step.

        >>> DigitNetwork().solve(torch.zeros(2, 1, 28, 28)).converged
        tensor([True, True])
        """
        X = self.fields(images)
        if isinstance(self.attention, EquilibriumAttention):
            response = self.attention.solve(X)
            return Answers(self.final(response.value[:, 0]), response.converged, response.num_steps)
        zeros = torch.zeros(len(X), dtype=torch.int64, device=X.device)
        return Answers(self.final(self.attention(X)[:, 0]), zeros == 0, zeros)


def count_parameters(network: nn.Module, *, free: bool = True) -> int:
    """Number of trainable numbers; ``free`` counts couplings tied by a symmetry once, and self-couplings not at all.

    >>> count_parameters(DigitNetwork()), count_parameters(DigitNetwork(), free=False)
    (25828, 39768)
    """
    total = 0
    for module in network.modules():
        own = sum(parameter.numel() for parameter in module.parameters(recurse=False))
        if free and isinstance(module, (AdaptiveTAPAttention, CouplingTensor)):
            num_free = coupling_tensors.count_free(module.symmetry, module.num_spins, module.dim)
            own += num_free - module.couplings.numel()
        total += own
    return total


class Training(NamedTuple):
    """What happened. The next three belong to ``frames``, the numbers of updates made before each.

    ``losses`` and ``accuracies``: of the test set. ``coupling_norms``: |J_ij|, the Frobenius norm over components;
    empty if there are no such couplings. ``train_losses``: of each batch before its update. ``num_unresolved``:
    examples in training whose response did not reach the tolerance. ``num_steps``: steps of each batch's slowest.
    """

    frames: Int[Tensor, " frames"]
    losses: Float[Tensor, " frames"]
    accuracies: Float[Tensor, " frames"]
    coupling_norms: Float[Tensor, "frames N N"]
    train_losses: Float[Tensor, " updates"]
    num_unresolved: int
    num_steps: Int[Tensor, " updates"]


def _coupling_norms(attention: nn.Module) -> Tensor:
    if isinstance(attention, (AdaptiveTAPAttention, MeanFieldAttention)):
        return torch.linalg.matrix_norm(attention.coupling_tensor().detach())
    return torch.zeros(0, 0)


@torch.no_grad()
def _tested(network: DigitNetwork, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    logits = torch.cat([network(part) for part in images.split(512)])
    return nn.functional.cross_entropy(logits, labels), (logits.argmax(-1) == labels).float().mean()


def train(
    network: DigitNetwork,
    images: Images,
    *,
    num_updates: int,
    batch_size: int = 60,
    learning_rate: float = 5e-4,
    frames: Iterable[int] = (),
    generator: torch.Generator | None = None,
) -> Training:
    """Adam on the cross-entropy of random batches, in place; measured before each update in ``frames`` and at the end.

    Batches go through the training set in an order that is drawn again for each pass. The defaults are those of
    the source's code.

    >>> images = load()
    >>> training = train(DigitNetwork(), images, num_updates=2, frames=[0, 1])
    >>> training.frames.tolist(), training.coupling_norms.shape
    ([0, 1, 2], torch.Size([3, 17, 17]))
    """
    num_updates = validate.count(num_updates, "num_updates", minimum=1)
    batch_size = validate.count(batch_size, "batch_size", minimum=1, maximum=len(images.train))
    looks = {validate.count(frame, "frames", maximum=num_updates) for frame in frames} | {num_updates}
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
    seen: list[tuple[int, Tensor, Tensor, Tensor]] = []
    losses, steps, unresolved = [], [], 0
    order = torch.empty(0, dtype=torch.int64)

    def look(update: int) -> None:
        if update in looks:
            tested = _tested(network, images.test, images.test_labels)
            seen.append((update, _coupling_norms(network.attention), *tested))

    for update in range(num_updates):
        look(update)
        if len(order) < batch_size:
            order = torch.randperm(len(images.train), generator=generator)
        batch, order = order[:batch_size], order[batch_size:]
        optimizer.zero_grad()
        answers = network.solve(images.train[batch])
        loss = nn.functional.cross_entropy(answers.logits, images.train_labels[batch])
        unresolved += int((~answers.converged).sum())
        steps.append(int(answers.num_steps.max()))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    look(num_updates)
    numbers, norms, test_losses, accuracies = zip(*seen, strict=True)
    return Training(
        torch.tensor(numbers),
        torch.stack(test_losses),
        torch.stack(accuracies),
        torch.stack(norms),
        torch.stack(losses),
        unresolved,
        torch.tensor(steps),
    )
