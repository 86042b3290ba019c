"""The asymmetric Sherrington-Kirkpatrick model: couplings to sample, and the infinite system by quadrature.

Couplings J_ij ~ N(mu / N, sigma^2 / N), all independent, J_ij of J_ji too; fields uniform between -X and X. In the code
mu is ``coupling_mean``, sigma ``coupling_std`` and X ``field_width``. For N to infinity the steady state follows from a
few integrals over one Gaussian and one uniform number. They are evaluated by NumPy in double precision, whatever JAX is
set to, and do not pass through ``jax.jit``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.optimize import brentq

from spinbook import validate
from spinbook.annotations import ArrayLike, Float, Number
from spinbook.checked import Key, NonNegative, PositiveCount, checked

__all__ = [
    "OrderParameters",
    "critical_beta",
    "naive_critical_beta",
    "naive_order_parameters",
    "order_parameters",
    "sample_couplings",
]

_EPSILON = float(np.finfo(np.float64).eps)
# Below this, rounding in the averages would decide whether a magnetization vanishes; beta is then within 1e-11 of its
# critical value.
_SMALLEST_MAGNETIZATION = 1e-6
_SMALLEST_OVERLAP = 1e-12


@checked()
def sample_couplings(
    key: Key, num_spins: PositiveCount, *, mean: Number, std: NonNegative, dtype: Any = None
) -> Float[Array, "N N"]:
    """J_ij = mean / N + std z_ij / sqrt(N), with all z_ij independent and standard normal, the diagonal too.

    ``dtype`` is by default that of ``mean`` and ``std``; other dtypes are other random numbers. Raises ``ValueError``
    for std < 0. Source: Bal (2023), section "A simple JAX implementation" of binary spins, which multiplies by beta.

    >>> import jax
    >>> sample_couplings(jax.random.key(0), 5, mean=1.0, std=0.1).shape
    (5, 5)
    """
    dtype = std.dtype if dtype is None else jnp.dtype(dtype)
    mu, sigma, n = mean.astype(dtype), std.astype(dtype), num_spins
    return mu / n + sigma * n**-0.5 * jax.random.normal(key, (n, n), dtype)


class OrderParameters(NamedTuple):
    """Averages over the spins of the infinite system in its steady state: numbers, or one for each beta.

    ``magnetization``: of m_i, on the branch that all spins up leads to. ``self_overlap``: of m_i^2, which is also that
    of <s_i(t) s_i(t')> at two different times. ``entropy_production``: per spin and step.
    """

    magnetization: Float[np.ndarray, "*betas"]
    self_overlap: Float[np.ndarray, "*betas"]
    entropy_production: Float[np.ndarray, "*betas"]


def _gaussian(sharpness: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the average over a standard normal z of functions of tanh(sharpness z + ...).

    The trapezoidal rule converges geometrically: its error is exp(-2 pi d / spacing) with d = pi / (2 sharpness) the
    distance of the poles of tanh from the real axis, and exp(-2 (pi / spacing)^2) from the Gaussian. Both are below the
    rounding error here, and so is the Gaussian beyond 9.
    """
    spacing = min(0.25, np.pi**2 / (40 * max(sharpness, 1e-100)))
    half = int(np.ceil(9 / spacing))
    z = spacing * np.arange(-half, half + 1)
    weights = np.exp(-(z**2) / 2)
    return z, weights / weights.sum()


# Its nodes cost as much as all averages over them.
_legendre = functools.cache(np.polynomial.legendre.leggauss)


def _uniform(width: float, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights of the average over H between -width and width of functions of tanh(beta H).

    In panels of beta times half their width at most 2, with 52 nodes each. The error is rho^(-2 n), rho =
    d + sqrt(1 + d^2) with d = pi / (2 beta half) the distance of the poles from a panel, in halves of it: below 1e-17.
    """
    if width == 0:
        return np.zeros(1), np.ones(1)
    panels = max(1, int(np.ceil(beta * width / 2)))
    x, weights = _legendre(52 if panels > 1 else 24 + int(np.ceil(14 * beta * width)))
    middles = (2 * np.arange(panels) + 1) / panels - 1
    nodes = (middles[:, None] + x / panels).ravel()
    return width * nodes, np.tile(weights / (2 * panels), panels)


class _System(NamedTuple):
    beta: float
    field_width: float
    coupling_mean: float
    coupling_std: float

    def average(self, function: Callable[[np.ndarray], np.ndarray], magnetization: float, variance: float) -> Any:
        """Of function(theta), theta = beta (H + mu M + sigma sqrt(variance) z), over H and z in the last two axes."""
        std = self.coupling_std * np.sqrt(variance)
        z, z_weights = _gaussian(self.beta * std)
        H, H_weights = _uniform(self.field_width, self.beta)
        theta = self.beta * (H[:, None] + self.coupling_mean * magnetization + std * z)
        return function(theta) @ z_weights @ H_weights

    def onsager(self, q: float) -> float:
        """beta^2 sum_j J_ij^2 (1 - m_j^2)."""
        return (self.beta * self.coupling_std) ** 2 * (1 - q)


def _largest_fixed_point(function: Callable[[float], float], smallest: float) -> float:
    """The x with function(x) = x that iteration from 1 reaches from above; 0 if it would be below ``smallest``.

    Where iterating is slow, brackets are tried from above. Of two solutions closer than a twentieth of x both can then
    be missed, as by an iteration that hardly moves near the place where two are about to appear.
    """
    above = 1.0
    for _ in range(12):
        x = function(above)
        # From above the iterates only fall; if they do not, they have converged to rounding.
        if x >= above * (1 - 4 * _EPSILON):
            return x
        above = x
    if function(above) >= above:
        return above
    for below in [*np.linspace(above, 0, 20, endpoint=False)[1:], smallest]:
        if function(below) >= below:
            return float(brentq(lambda x: function(x) - x, below, above, xtol=1e-16, rtol=4 * _EPSILON))
        above = below
    return 0.0


def _steady_state(system: _System) -> tuple[float, float, float]:
    M = _largest_fixed_point(lambda M: float(system.average(np.tanh, M, 1.0)), _SMALLEST_MAGNETIZATION)

    def overlap(q: float) -> float:
        """Two times, or two copies, share the part sqrt(q) x of the noise."""
        sharpness = system.beta * system.coupling_std * np.sqrt(1 - q)
        y, weights = _gaussian(sharpness)

        def squared_mean(theta: np.ndarray) -> np.ndarray:
            # One H at a time: the three averages together would not fit into memory where beta sigma is large.
            return np.stack([np.tanh(row[:, None] + sharpness * y) @ weights for row in theta]) ** 2

        return float(system.average(squared_mean, M, q))

    q = _largest_fixed_point(overlap, _SMALLEST_OVERLAP)
    susceptibility = system.average(lambda theta: 1 - np.tanh(theta) ** 2, M, 1.0)
    return M, q, system.onsager(q) * float(susceptibility)


def _naive_overlap(system: _System, M: float) -> float:
    return _largest_fixed_point(lambda q: float(system.average(lambda x: np.tanh(x) ** 2, M, q)), _SMALLEST_OVERLAP)


def _naive_steady_state(system: _System) -> tuple[float, float, float]:
    def magnetization(M: float) -> float:
        return float(system.average(np.tanh, M, _naive_overlap(system, M)))

    M = _largest_fixed_point(magnetization, _SMALLEST_MAGNETIZATION)
    q = _naive_overlap(system, M)
    # Of J_ij - J_ji only J_ij is correlated with D_ij = beta J_ij (1 - m_i^2) (1 - m_j^2).
    return M, q, system.onsager(q) * (1 - q)


def _parameters(field_width: Any, coupling_mean: Any, coupling_std: Any) -> tuple[float, float, float]:
    values = {"field_width": field_width, "coupling_mean": coupling_mean, "coupling_std": coupling_std}
    width, mean, std = (validate.number(value, name, least=0) for name, value in values.items())
    return width, mean, std


def _for_each(
    beta: Any, parameters: tuple[float, float, float], solve: Callable[[_System], tuple[float, float, float]]
) -> OrderParameters:
    betas = validate.known_numbers(beta, "beta")
    validate.require(lambda x: x > 0, betas, "beta", "finite numbers > 0")
    systems = [_System(float(b), *parameters) for b in betas.ravel()]
    found = np.array([solve(system) for system in systems]).reshape(*betas.shape, 3)
    return OrderParameters(*(found[..., column] for column in range(3)))


def order_parameters(
    beta: Float[ArrayLike, "*betas"], *, field_width: Number, coupling_mean: Number, coupling_std: Number
) -> OrderParameters:
    """M = <tanh(beta (H + mu M + sigma z))>, q = <(<tanh(beta (H + mu M + sigma (sqrt(q) x + sqrt(1-q) y)))>_y)^2>.

    H is uniform between -X and X; x, y, z are standard normal. The noise z in the field of a spin stands for
    sum_j (J_ij - mu / N) s_j; its variance is sigma^2, because s_j^2 = 1, and not sigma^2 q. Independent couplings
    make it independent of the spin's own past, so that this is exact for N to infinity. Entropy production per spin,
    sigma^2 beta^2 (1 - q) <1 - tanh^2(beta (H + mu M + sigma z))>, follows from beta sum_ij (J_ij - J_ji) D_ij by
    integrating the couplings by parts.

    ``beta`` is a number or an array, and so are the results, NumPy's in double precision and accurate to 1e-13 but for
    M within 1e-8 of the critical beta. M >= 0: without fields its sign is the start's.
    Raises ``ValueError`` for beta <= 0, NaN and negative parameters. Source: Aguilera, Igarashi & Shimazaki (2023).

    >>> M, q, rate = order_parameters(1.5, field_width=0.5, coupling_mean=1.0, coupling_std=0.1)
    >>> round(float(M), 6), round(float(q), 6), round(float(rate), 6)
    (0.754422, 0.601091, 0.003563)
    """
    return _for_each(beta, _parameters(field_width, coupling_mean, coupling_std), _steady_state)


def naive_order_parameters(
    beta: Float[ArrayLike, "*betas"], *, field_width: Number, coupling_mean: Number, coupling_std: Number
) -> OrderParameters:
    """M = <tanh(theta)>, q = <tanh^2(theta)> with theta = beta (H + mu M + sigma sqrt(q) z).

    Naive mean field of the infinite system: the field of a spin is made of magnetizations, so that its noise has the
    variance sigma^2 q. The entropy production is its estimate from first-order delayed correlations,
    (beta sigma (1 - q))^2. Arguments and errors as for ``order_parameters``.

    >>> round(float(naive_order_parameters(1.5, field_width=0.5, coupling_mean=1.0, coupling_std=0.1).magnetization), 6)
    0.759917
    """
    return _for_each(beta, _parameters(field_width, coupling_mean, coupling_std), _naive_steady_state)


def _true_slope(system: _System) -> float:
    return system.beta * system.coupling_mean * float(system.average(lambda x: 1 - np.tanh(x) ** 2, 0.0, 1.0))


def _critical(parameters: tuple[float, float, float], slope: Callable[[_System], float]) -> float:
    """The smallest beta at which a small magnetization no longer shrinks: the slope of M at 0 is 1."""
    X, mu, sigma = parameters
    # The slope is at most beta mu, so that no system orders below beta = 1 / mu.
    low = high = 1 / mu
    if slope(_System(low, *parameters)) >= 1 - 4 * _EPSILON:
        return low
    # A slope that rises to 1 without end, as for fields as wide as the couplings are strong, is 1 by rounding only.
    while slope(_System(high, *parameters)) < 1 + 64 * _EPSILON:
        low, high = high, 1.1 * high
        if high > 100 / mu:
            wanted = f"a number large enough to order the system (field_width={X:g}, coupling_std={sigma:g})"
            raise ValueError(f"coupling_mean: expected {wanted}, got {mu:g}")
    return float(brentq(lambda beta: slope(_System(beta, *parameters)) - 1, low, high, xtol=1e-15, rtol=1e-14))


def critical_beta(*, field_width: Number, coupling_mean: Number, coupling_std: Number) -> float:
    """beta mu <1 - tanh^2(beta (H + sigma z))> = 1, which is (mu / X) <tanh(beta (X + sigma z))> = 1.

    The inverse temperature above which the infinite system has a magnetization; accurate to 1e-13. Not that of the
    naive mean-field iteration, see ``naive_critical_beta``. Raises ``ValueError`` for negative parameters and NaN, and
    where the system does not order for beta mu up to 100, as for wide fields or strong disorder.
    Source: Aguilera, Igarashi & Shimazaki (2023).

    >>> round(critical_beta(field_width=0.5, coupling_mean=1.0, coupling_std=0.1), 8)
    1.11084004
    """
    return _critical(_parameters(field_width, coupling_mean, coupling_std), _true_slope)


def naive_critical_beta(*, field_width: Number, coupling_mean: Number, coupling_std: Number) -> float:
    """beta mu (1 - q) = 1, with the q of ``naive_order_parameters`` at M = 0.

    Where the naive mean-field iteration of the infinite system orders: too early, at a smaller beta than the system
    itself. Errors as for ``critical_beta``.

    >>> round(naive_critical_beta(field_width=0.5, coupling_mean=1.0, coupling_std=0.1), 8)
    1.09970788
    """

    def slope(system: _System) -> float:
        return system.beta * system.coupling_mean * (1 - _naive_overlap(system, 0.0))

    return _critical(_parameters(field_width, coupling_mean, coupling_std), slope)
