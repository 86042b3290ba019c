"""Trainings, fits, samples on spheres and random systems for the audit of adaptive TAP."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from experiments import digit_network
from spinbook.adaptive_tap import attention, couplings, priors, vector
from spinbook.replicas import mean_and_error


def fitted(network: nn.Module, inputs: Tensor, targets: Tensor, *, steps: int) -> nn.Module:
    """The network after so many steps of Adam, rate 0.003, on the mean square distance of all outputs from targets."""
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        (network(inputs) - targets).square().mean().backward()
        optimizer.step()
    return network


def accelerated(f: Callable[[Tensor], Tensor], y: Tensor, *, ridge: float = 1e-4) -> Tensor:
    """The state (batch, entries) with the smallest |f(y) - y| / |f(y)| that Anderson's method meets in sixty steps.

    As in the source, all entries of an example are mixed with the same weights, over the last five states.
    """
    states, images, best = [y], [f(y)], (np.inf, y)
    for _ in range(60):
        gaps = torch.stack([image - state for state, image in zip(states, images, strict=True)], 1)
        gram = gaps @ gaps.mT + ridge * torch.eye(len(states), dtype=y.dtype)
        weights = torch.linalg.solve(gram, torch.ones(len(states), 1, dtype=y.dtype))
        y = (weights / weights.sum(1, keepdim=True) * torch.stack(images, 1)).sum(1)
        new = f(y)
        best = min(best, (float((new - y).norm() / new.norm()), y), key=lambda pair: pair[0])
        states, images = [*states, y][-5:], [*images, new][-5:]
    return best[1]


def _on_sphere(h: np.ndarray, radius: float, rng: np.random.Generator) -> np.ndarray:
    """Draws from exp(h . S) on a sphere in three dimensions, where the component along h has an exponential density."""
    size = np.linalg.norm(h, axis=0) * radius
    u, axis = rng.random(size.shape), h * radius / size
    along = 1 + np.log(u + (1 - u) * np.exp(-2 * size)) / size
    side = rng.normal(size=h.shape)
    side -= (side * axis).sum(axis=0) * axis
    side /= np.linalg.norm(side, axis=0)
    return radius * (along * axis + np.sqrt(np.clip(1 - along**2, 0, 1)) * side)


def sphere_means(
    couplings: np.ndarray, fields: np.ndarray, radius: float, *, chains: int
) -> tuple[np.ndarray, np.ndarray]:
    """<S_i> of p ~ exp(S.J S / 2 + X.S) for spins on a sphere in three dimensions, and standard errors over chains.

    ``couplings`` (3 N, 3 N), symmetric, without couplings of a spin with itself; ``fields`` (batch, N, 3). In each
    sweep every spin is drawn anew, given the others; of 180 sweeps the last 150 count.
    """
    rng, h = np.random.default_rng(1), fields.reshape(len(fields), -1).T[..., None]
    S = np.zeros((len(couplings), len(fields), chains))
    total = np.zeros_like(S)
    for sweep in range(180):
        for i in range(0, len(S), 3):
            own = slice(i, i + 3)
            S[own] = _on_sphere(h[own] + np.tensordot(couplings[own], S, 1), radius, rng)
        if sweep >= 30:
            total += S / 150
    error = total.std(axis=-1, ddof=1) / np.sqrt(chains)
    return total.mean(-1).T.reshape(fields.shape), error.T.reshape(fields.shape)


def averaged(values: np.ndarray, rivals: np.ndarray) -> dict[str, float]:
    """What a claim takes: the means of independent values and of a rival's, with their standard errors."""
    (value, error), (rival, its_error) = map(mean_and_error, (values, rivals))
    return {"measured": value, "uncertainty": error, "rival": rival, "rival_uncertainty": its_error}


def ratio(values: np.ndarray, of: np.ndarray) -> tuple[float, float]:
    """sum_k values_k / sum_k of_k, and the standard error that leaving out one k after the other gives it."""
    values, of = np.asarray(values, dtype=float), np.asarray(of, dtype=float)
    left_out = (values.sum() - values) / (of.sum() - of)
    spread = np.square(left_out - left_out.mean()).sum() * (1 - 1 / len(of))
    return float(values.sum() / of.sum()), float(np.sqrt(spread))


def tree(num_spins: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Couplings and fields of a random tree: every spin after the first is coupled to one that came before it."""
    J = np.zeros((num_spins, num_spins))
    for i in range(1, num_spins):
        j = rng.integers(i)
        J[i, j] = J[j, i] = rng.normal()
    return J, 0.5 * rng.normal(size=num_spins)


def spiked(num_spins: int, strength: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """J = strength Y without its diagonal, Y = strength s s^T / N + W with W of variance 1 / N, and the signs s."""
    s = rng.choice([-1.0, 1.0], size=num_spins)
    W = rng.normal(scale=strength / np.sqrt(2 * num_spins), size=(num_spins, num_spins))
    J = strength**2 / num_spins * np.outer(s, s) + W + W.T
    np.fill_diagonal(J, 0)
    return J, s


def fitted_exponent(step: Callable[[Tensor], object], sizes: Sequence[int], rounds: int) -> float:
    """Power of the number of rows in the processor time of ``step`` on a random matrix, the best of some rounds each.

    Sizes take turns, so that what else the machine does slows all of them.
    """
    matrices = [torch.randn(n, n, dtype=torch.float64) / n for n in sizes]
    best = np.full(len(matrices), np.inf)
    for _ in range(rounds):
        for k, matrix in enumerate(matrices):
            start = time.process_time()
            step(matrix)
            best[k] = min(best[k], time.process_time() - start)
    return float(np.polyfit(np.log(sizes), np.log(best), 1)[0])


def adjoint_error(step: Callable[[Tensor, Tensor], Tensor], couplings: Tensor, batch: int, seed: int) -> float:
    """Relative error of the gradient by the fields, accelerated, of a module whose state is the means and all V.

    ``step(state, X)`` updates the state (batch, 3 N + 9 N) of spins of three components with the couplings (3 N, 3 N)
    and fields X; it is linearised at V = 0, where the gradient is a product with the inverse of 1 - J.
    """
    generator = torch.Generator().manual_seed(seed)
    X, seen = torch.randn(2, batch, len(couplings), generator=generator, dtype=couplings.dtype).unbind()
    inverse = torch.linalg.inv(torch.eye(len(couplings), dtype=couplings.dtype) - couplings)
    zeros = torch.zeros(batch, 3 * len(couplings), dtype=couplings.dtype)
    back = torch.func.vjp(lambda state: step(state, X), torch.cat([X @ inverse, zeros], dim=1))[1]
    arriving = torch.cat([seen, zeros], dim=1)
    found = accelerated(lambda y: back(y)[0] + arriving, 0 * arriving)[:, : len(couplings)]
    true = seen @ inverse
    return float((found - true).abs().max() / true.abs().max())


def trained(seed: int, updates: int, factor: float) -> digit_network.Training:
    """The example network trained on small digits, with couplings larger by a factor at the start.

    The response is sought to an absolute residual of 1e-4 in 40 steps.
    """
    torch.manual_seed(seed)
    symmetry = couplings.symmetrize_components
    module = attention.MeanFieldAttention(17, 10, symmetry=symmetry, tol=1e-4, eliminate=False, max_steps=40)
    network = digit_network.DigitNetwork(attention=module)
    with torch.no_grad():
        module.couplings.mul_(factor)
    return _on_digits(network, seed, updates)


def watched(seed: int, updates: int) -> digit_network.Training:
    """The same by the rules of the source's code, with a look at the couplings at the start and at a fifth."""
    torch.manual_seed(seed)
    return _on_digits(digit_network.DigitNetwork(), seed, updates, frames=(0, updates // 5))


_images = functools.cache(digit_network.load)


def _on_digits(
    network: digit_network.DigitNetwork, seed: int, updates: int, frames: Sequence[int] = ()
) -> digit_network.Training:
    order = torch.Generator().manual_seed(seed)
    return digit_network.train(
        network, _images(), num_updates=updates, learning_rate=2e-3, frames=frames, generator=order
    )


def sphere_errors(num_fields: int, fit_steps: int, chains: int) -> dict[str, np.ndarray]:
    """Mean square errors, over what sampling adds, of the means of eight spins on a sphere for thirty fields each.

    Without a correction, with a network ``before`` it is fitted, ``learned`` from the solutions of adaptive TAP for
    other fields, and ``explicit``, adaptive TAP itself. The network is to give sum_j J_ij m_j + X_i - phi^-1(m_i).
    """
    generator, R = torch.Generator().manual_seed(0), 3**0.5
    torch.manual_seed(0)
    J = couplings.symmetrize_separately(couplings.sample(8, 3, std=0.3, generator=generator, dtype=torch.float64))
    many, few = (0.7 * torch.randn(n, 8, 3, generator=generator, dtype=torch.float64) for n in (num_fields, 30))
    sizes = np.linspace(1e-4, 60, 200_001)  # of R |h|
    lengths = R / np.tanh(sizes) - R / sizes

    def felt(m: Tensor, X: Tensor) -> Tensor:
        return torch.einsum("ijab,njb->nia", J, m) + X

    def free(h: Tensor) -> Tensor:
        size = R * h.norm(dim=-1, keepdim=True)
        return R * (1 / torch.tanh(size) - 1 / size) * h * R / size

    m = vector.solve(J, many, priors.Spherical(R), tol=1e-6).magnetizations
    length = m.norm(dim=-1, keepdim=True)
    inverse = m / length * torch.from_numpy(np.interp(length.numpy(), lengths, sizes)) / R
    before, network = (attention.FeedForward(3, 24).double() for _ in range(2))
    learned = fitted(network, m, felt(m, many) - inverse, steps=fit_steps)
    true, noise = sphere_means(couplings.as_matrix(J).numpy(), few.numpy(), R, chains=chains)

    @torch.no_grad()
    def errors(correction: nn.Module) -> np.ndarray:
        m = free(few)
        for _ in range(400):
            m = 0.7 * m + 0.3 * free(felt(m, few) - correction(m))
        return np.asarray(((m.numpy() - true) ** 2 - noise**2).mean(axis=(1, 2)))

    explicit = vector.solve(J, few, priors.Spherical(R)).magnetizations.numpy()
    kinds = {"none": attention.NoCorrection(), "before": before, "learned": learned}
    return {name: errors(kind) for name, kind in kinds.items()} | {
        "explicit": ((explicit - true) ** 2 - noise**2).mean(axis=(1, 2))
    }
