"""One vector spin on a sphere in a field: partition function, moments, derivatives, sampling.

A spin s has D > 2 components and length R with R^2 = D/2 - 1, tied to D so that D to infinity has a limit; its density
in a field h is proportional to exp(beta s . h), the von Mises-Fisher distribution of concentration beta R |h|. Fields
are (..., D), one spin for each leading index. Exact results need the ratio of two Bessel functions; ``large_d`` keeps
the leading order in 1/D. D <= 2 is a ``ValueError``: the radius would be zero or imaginary.

A ``Response`` is all that mean-field theory needs of a spin: ``exact``, ``large_d``, or one that you write.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from spinbook import validate
from spinbook.annotations import ArrayLike, Float
from spinbook.checked import Key, Positive, checked, not_negative

__all__ = [
    "Gains",
    "Response",
    "balanced",
    "bessel_ratio",
    "covariance",
    "covariance_large_d",
    "exact",
    "field",
    "field_large_d",
    "has_radius",
    "inside_ball",
    "large_d",
    "log_partition",
    "magnetization",
    "magnetization_large_d",
    "radius",
    "sample",
    "squared_length",
    "squared_radius",
]

# Orders are raised by this much, where the bounds of Amos converge fast, and brought back by the recursion.
_RAISED = 20
_LEVELS = 10
_DEBYE_TERMS = 10
_NEWTON_STEPS = 8
# A round of rejection accepts more than half of all draws, so that so many rounds without end do not happen.
_MAX_ROUNDS = 1000


def _raised_ratio(order: Array | float, t: Array) -> Array:
    """r / x of order >= 20 as a function of t = x^2, from a triangle of bounds that close in on it."""
    shape = (_LEVELS + 1,) + (1,) * jnp.ndim(t)
    order = order[None] if isinstance(order, jax.Array) and order.ndim else order
    orders, t = order + jnp.arange(_LEVELS + 1, dtype=t.dtype).reshape(shape), t[None]

    def refine(_: Array, q: Array) -> Array:
        # A shorter triangle each time; entries beyond its end are never read. Unrolled, the loop would take ten times
        # longer to compile, and its derivatives minutes.
        return 1 / (orders + 1 + jnp.sqrt((orders + 1) ** 2 + t * jnp.concatenate([q[1:], q[-1:]]) / q))

    return jax.lax.fori_loop(0, _LEVELS, refine, 1 / (orders + 0.5 + jnp.sqrt((orders + 1.5) ** 2 + t)))[0]


def _ratios(order: Array | float, t: Array) -> tuple[Array, Array]:
    """I_{nu+1}(x) / (x I_nu(x)) at t = x^2 for nu = order; the same for order + 19, ..., order. Smooth in t, also at 0.

    Derivatives go through the algorithm. The closed form r' = 1 - r^2 - (2 nu + 1) r / x would lose all digits where
    r is close to one.
    """

    def lower(q: Array, k: Array) -> tuple[Array, Array]:
        q = 1 / (2 * (order + k + 1) + t * q)
        return q, q

    return jax.lax.scan(lower, _raised_ratio(order + _RAISED, t), jnp.arange(_RAISED, dtype=t.dtype)[::-1])


def _ratio_over_x(order: Array | float, t: Array) -> Array:
    return _ratios(order, t)[0]


NotNegative = Annotated[Float[ArrayLike, "*#shape"], not_negative]


@checked(static=())
def bessel_ratio(order: NotNegative, x: NotNegative) -> Float[Array, "*shape"]:
    """r_nu(x) = I_{nu+1}(x) / I_nu(x), for any real nu = ``order`` >= 0 and x >= 0.

    To rounding, 2e-15 in double precision, at x = 0 and where both Bessel functions underflow as well; rises from
    x / (2 nu + 2) to 1. Differentiable in x of any order; shapes broadcast. Cost: some 200 square roots and divisions
    for each number. Raises ``ValueError`` for negative numbers, NaN, and shapes that do not fit.
    Source: Bal (2023), appendix A.4; Amos (1974), whose bounds converge fast from order 20 on: the ratio of an order
    raised by 20 is brought back by 1 / r_nu = 2 (nu + 1) / x + r_{nu+1}. The source raises to an integer order instead,
    which is wrong by up to 12 % for others.

    >>> import math
    >>> abs(float(bessel_ratio(0.5, 2.0)) - (1 / math.tanh(2) - 1 / 2)) < 1e-6
    True
    >>> float(bessel_ratio(3.0, 0.0))
    0.0
    """
    order, x = jnp.broadcast_arrays(order, x)
    # Beyond this the ratio rounds to 1, and squares would overflow.
    limited = jnp.minimum(x, jnp.asarray(1e18, x.dtype))
    return limited * _ratio_over_x(order, limited * limited)


Axes = tuple[int, ...]


class Gains(NamedTuple):
    """phi(h) = f h, and f1 = 2 df/ds, f2 = 4 d^2f/ds^2 with s = |h|^2, so that for any increment d of the field

    phi'(d) = f d + f1 (h . d) h  and  phi''(d, d) = f1 ((d . d) h + 2 (h . d) d) + f2 (h . d)^2 h.
    """

    f: Array
    f1: Array
    f2: Array


def squared_length(vectors: Array, axes: Axes = (-1,)) -> Array:
    """|a|^2, the components lying in the given axes.

    >>> squared_length(jnp.array([[3.0, 4.0], [1.0, 0.0]])).tolist()
    [25.0, 1.0]
    """
    squares = vectors * vectors
    for axis in sorted(axes, reverse=True):
        squares = jnp.sum(squares, axis=axis)
    return squares


def _argument(vectors: Array, axes: Axes) -> tuple[Array, int]:
    """|a|^2 and D; NaN where the square overflows, of which a gain would make 0, as if there were no field."""
    squares = squared_length(vectors, axes)
    return jnp.where(jnp.isfinite(squares), squares, jnp.nan), math.prod(vectors.shape[axis] for axis in axes)


@dataclass(frozen=True)
class Response:
    """phi(h) = gain(|h|^2, D, beta) h, the mean of a spin in the effective field h; ``inverse`` leads back.

    ``response(effective_fields, beta)`` takes one vector for each leading index; where heads split the components,
    ``axes`` says in which axes these lie. Both gains act on arrays of squared lengths and must be differentiable twice,
    also at 0; ``D`` is a Python integer, and ``beta`` a scalar array. Nothing is checked. Mean-field functions take a
    response as an option, ``large_d`` unless another is passed.

    >>> large_d, large_d(jnp.array([0.0, 3.0, 4.0, 0.0]), jnp.ones(())).round(3).tolist()
    (sphere.large_d, [0.0, 0.492..., 0.656..., 0.0])
    """

    name: str
    gain: Callable[[Array, int, Array], Array]
    inverse_gain: Callable[[Array, int, Array], Array]

    def __call__(self, effective_fields: Array, beta: Array, *, axes: Axes = (-1,)) -> Array:
        """m = phi(h)."""
        return jnp.expand_dims(self.gain(*_argument(effective_fields, axes), beta), axes) * effective_fields

    def inverse(self, magnetizations: Array, beta: Array, *, axes: Axes = (-1,)) -> Array:
        """h with phi(h) = m."""
        return jnp.expand_dims(self.inverse_gain(*_argument(magnetizations, axes), beta), axes) * magnetizations

    def slopes(self, effective_fields: Array, beta: Array, *, axes: Axes = (-1,)) -> tuple[Array, Array]:
        """f and f1 at h, of which the covariance is made, Var = (f 1 + f1 h h^T) / beta."""
        return self._slopes(*_argument(effective_fields, axes), beta)

    def gains(self, effective_fields: Array, beta: Array, *, axes: Axes = (-1,)) -> Gains:
        """f, f1 and f2 at h."""
        return self.gains_at(*_argument(effective_fields, axes), beta)

    def gains_at(self, squared_field: Array, dim: int, beta: Array) -> Gains:
        """f, f1 and f2 where the field has the given squared length, the last two by differentiating ``gain``."""
        s = squared_field
        # Nested once, not each order by itself: the compiler does not see that their loops are the same.
        (f, f1), (_, f2) = jax.jvp(lambda s: self._slopes(s, dim, beta), (s,), (jnp.full_like(s, 2),))
        return Gains(f, f1, f2)

    def _slopes(self, s: Array, dim: int, beta: Array) -> tuple[Array, Array]:
        return jax.jvp(lambda s: self.gain(s, dim, beta), (s,), (jnp.full_like(s, 2),))

    def __repr__(self) -> str:
        return f"sphere.{self.name}"


def _large_d_gain(s: Array, dim: int, beta: Array) -> Array:
    return beta / (1 + jnp.sqrt(1 + beta**2 * s / squared_radius(dim)))


def _large_d_inverse_gain(squared_magnetization: Array, dim: int, beta: Array) -> Array:
    return 2 * squared_radius(dim) / (beta * (squared_radius(dim) - squared_magnetization))


def _exact_gain(s: Array, dim: int, beta: Array) -> Array:
    order = squared_radius(dim)
    return beta * order * _ratio_over_x(order, beta**2 * order * s)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _squared_argument(order: float, squared_ratio: Array) -> Array:
    """x^2 where r_order(x)^2 takes the given value below 1."""
    ratio = jnp.sqrt(squared_ratio)
    a = order + 0.5

    def climb(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, _, steps = state
        q, slope = jax.jvp(partial(_ratio_over_x, order), (x * x,), (2 * x,))
        # The slope of r = x q is q + x dq/dx.
        step = (ratio - x * q) / (q + x * slope)
        # Each error is proportional to the square of the error before.
        return x + step, jnp.any(step > enough * x), steps + 1

    # r is below x / (a + sqrt(x^2 + a^2)), so this is below the root; r is concave and increasing, and Newton's method
    # climbs to the root without passing it.
    enough = float(jnp.finfo(squared_ratio.dtype).eps) ** 0.5 / 16
    start = 2 * a * ratio / (1 - squared_ratio), jnp.array(True), jnp.zeros((), jnp.int32)
    x = jax.lax.while_loop(lambda state: state[1] & (state[2] < _NEWTON_STEPS), climb, start)[0]
    return x * x


@_squared_argument.defjvp
def _squared_argument_jvp(order: float, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    t = _squared_argument(order, *primals)
    squared_ratio_slope = jax.jvp(lambda t: t * _ratio_over_x(order, t) ** 2, (t,), (jnp.ones_like(t),))[1]
    return t, tangents[0] / squared_ratio_slope


def _exact_inverse_gain(squared_magnetization: Array, dim: int, beta: Array) -> Array:
    order = squared_radius(dim)
    t = _squared_argument(order, squared_magnetization / order)
    return 1 / (beta * order * _ratio_over_x(order, t))


# The two responses of the book.
exact = Response("exact", _exact_gain, _exact_inverse_gain)
large_d = Response("large_d", _large_d_gain, _large_d_inverse_gain)


def _log_debye_coefficients() -> list[np.ndarray]:
    """Coefficients of d_1(p), ..., d_10(p) in log(I_v(v z) / leading order) = sum_k d_k(p) / v^k, p = (1 + z^2)^(-1/2).

    Source: NIST Digital Library of Mathematical Functions, 10.41.9 for the polynomials u_k that exp of the sum expands
    to.
    """
    p = np.polynomial.Polynomial([0.0, 1.0])
    u = [np.polynomial.Polynomial([1.0])]
    d: list[np.polynomial.Polynomial] = []
    for n in range(1, _DEBYE_TERMS + 1):
        u.append(p**2 * (1 - p**2) * u[-1].deriv() / 2 + ((1 - 5 * p**2) * u[-1]).integ() / 8)
        d.append(u[n] - sum((k / n * d[k - 1] * u[n - k] for k in range(1, n)), 0 * p))
    return [np.asarray(polynomial.coef) for polynomial in d]


_LOG_DEBYE = _log_debye_coefficients()


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _log_scaled_bessel(order: float, t: Array) -> Array:
    """log of Gamma(nu + 1) (2 / x)^nu I_nu(x) at t = x^2, which is 0 at 0."""
    v = order + _RAISED
    growth = jnp.sqrt(1 + t / v**2)
    excess = t / v**2 / (1 + growth)
    total = v * (excess - jnp.log1p(excess / 2)) - jnp.log(growth) / 2
    for k, coefficients in enumerate(_LOG_DEBYE, start=1):
        polynomial = jnp.polyval(jnp.asarray(coefficients[::-1], t.dtype), 1 / growth)
        total += (polynomial - float(coefficients.sum())) / v**k
    orders = order + jnp.arange(_RAISED, dtype=t.dtype)[::-1].reshape(-1, *(1,) * jnp.ndim(t))
    return total - jnp.sum(jnp.log(2 * (orders + 1) * _ratios(order, t)[1]), axis=0)


@_log_scaled_bessel.defjvp
def _log_scaled_bessel_jvp(order: float, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return _log_scaled_bessel(order, *primals), tangents[0] * _ratio_over_x(order, *primals) / 2


def squared_radius(dim: int) -> float:
    """R^2 = D/2 - 1, for a spin of ``dim`` = D components; also the order of its Bessel functions.

    Raises ``ValueError`` for D <= 2. Source: Bal (2023), the unlabelled equation nu = D/2 - 1 = R^2.

    >>> squared_radius(512)
    255.0
    """
    if dim <= 2:
        raise ValueError(f"dim: expected more than 2 dimensions, for a radius sqrt(D/2 - 1) above 0, got {dim}")
    return dim / 2 - 1


def radius(dim: int) -> float:
    """R = sqrt(D/2 - 1), the length of a spin of ``dim`` = D components. Raises ``ValueError`` for D <= 2.

    >>> round(radius(512), 4)
    15.9687
    """
    return math.sqrt(squared_radius(dim))


def balanced(vectors: Float[Array, "*batch D"]) -> Float[Array, "*batch D"]:
    """Vectors times a power of two each, so that no square overflows and the largest does not vanish; 0 stays 0.

    Of the same direction to the last bit, so that a / |a| may be computed for any a that is finite. Its derivative is
    that of the direction only.

    >>> balanced(jnp.array([3e38, 0.0, 4e-38]))[0] < 5
    Array(True, dtype=bool)
    """
    range_ = jnp.finfo(vectors.dtype)
    largest = jnp.max(jnp.abs(jax.lax.stop_gradient(vectors)), axis=-1, keepdims=True)
    # The reciprocal must be a normal number: others are flushed to zero.
    exponent = jnp.clip(jnp.frexp(largest)[1], range_.minexp, -range_.minexp)
    return vectors * jnp.ldexp(jnp.ones_like(largest), -exponent)


def has_radius(vectors: Array | np.ndarray, name: str) -> None:
    """Raise unless the vectors have D > 2 components."""
    if vectors.shape[-1] <= 2:
        raise ValueError(f"{name}: expected vectors of more than 2 components, got {vectors.shape[-1]}")


def inside_ball(magnetizations: Array | np.ndarray, name: str) -> None:
    """Raise unless every vector is shorter than the radius; lengths are unknown under a trace."""
    has_radius(magnetizations, name)
    if validate.is_traced(magnetizations):
        return
    length = radius(magnetizations.shape[-1])
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(np.asarray(magnetizations, np.float64), axis=-1)
    validate.require(lambda x: x < length, lengths, name, f"vectors shorter than the radius {length:g}")


Vectors = Annotated[Float[ArrayLike, "*batch D"], has_radius]
Means = Annotated[Float[ArrayLike, "*batch D"], inside_ball]


@checked(static=())
def log_partition(fields: Vectors, *, beta: Positive) -> Float[Array, "*batch"]:
    """log Z = log[(2 pi R)^(D/2) I_{D/2-1}(beta R |h|) / (beta |h|)^(D/2-1)].

    Z is the integral of exp(beta s . h) over the sphere of radius R, measured by its area; without a field log Z is the
    logarithm of that area. To 1e-12 of its size in double precision; its gradient is beta times ``magnetization``.
    Fields are (..., D) with D > 2, the result is (...). Raises ``ValueError`` for D <= 2, NaN and beta <= 0.
    Source: Bal (2023), label partfun and appendix A.1.

    >>> import math
    >>> h = [0.0, 3.0, 4.0]  # R^2 = 1/2, and Z = 4 pi R^2 sinh(x) / x with x = beta R |h|
    >>> x = 5 / math.sqrt(2)
    >>> abs(float(log_partition(h, beta=1.0)) - math.log(2 * math.pi * math.sinh(x) / x)) < 1e-5
    True
    """
    dim = fields.shape[-1]
    order = squared_radius(dim)
    log_area = math.log(2) + dim / 2 * math.log(math.pi) - math.lgamma(dim / 2) + (dim - 1) / 2 * math.log(order)
    return log_area + _log_scaled_bessel(order, beta**2 * order * squared_length(fields))


@checked(static=("response",))
def magnetization(fields: Vectors, *, beta: Positive, response: Response = exact) -> Float[Array, "*batch D"]:
    """phi(h) = R I_{D/2}(beta R |h|) / I_{D/2-1}(beta R |h|) h / |h|.

    The mean of a spin, exact for any D > 2 and any field, 0 included; with another ``response`` what that says.
    Fields (..., D) give means (..., D), shorter than R. Raises ``ValueError`` for D <= 2, NaN and beta <= 0.
    Source: Bal (2023), label meanmagsbessels and appendix A.2.

    >>> [round(float(m), 4) for m in magnetization([0.0, 3.0, 4.0], beta=1.0)]  # R coth(x) - 1 / x, x = R 5
    [0.0, 0.305, 0.4066]
    """
    return response(fields, beta)


def magnetization_large_d(fields: Vectors, *, beta: Positive) -> Float[Array, "*batch D"]:
    """phi(h) = beta h / (1 + gamma), gamma = sqrt(1 + beta^2 |h|^2 / R^2).

    The leading order of ``magnetization`` in 1/D at fixed |h| / R. It is too long, by a fraction
    (1 + gamma) / (2 gamma^2 nu) with nu = D/2 - 1, which is 1/nu for weak fields. Source: Bal (2023), label
    largedevmag.

    >>> [round(float(m), 4) for m in magnetization_large_d([0.0, 3.0, 4.0], beta=1.0)]
    [0.0, 0.3685, 0.4913]
    """
    return magnetization(fields, beta=beta, response=large_d)


@checked(static=("response",))
def field(magnetizations: Means, *, beta: Positive, response: Response = exact) -> Float[Array, "*batch D"]:
    """h with magnetization(h) = m, for |m| < R.

    The inverse of ``magnetization``, by Newton's method from below where the response is exact; differentiable. Shapes
    (..., D) as there. Raises ``ValueError`` for |m| >= R, D <= 2, NaN and beta <= 0.

    >>> m = magnetization([0.0, 3.0, 4.0], beta=1.0)
    >>> [round(float(h), 3) for h in field(m, beta=1.0)]
    [0.0, 3.0, 4.0]
    """
    return response.inverse(magnetizations, beta)


def field_large_d(magnetizations: Means, *, beta: Positive) -> Float[Array, "*batch D"]:
    """h = 2 R^2 m / (beta (R^2 - |m|^2)), for |m| < R: the inverse of ``magnetization_large_d``.

    Source: Bal (2023), label invphi.

    >>> m = magnetization_large_d([0.0, 3.0, 4.0], beta=1.0)
    >>> [round(float(h), 3) for h in field_large_d(m, beta=1.0)]
    [0.0, 3.0, 4.0]
    """
    return field(magnetizations, beta=beta, response=large_d)


@checked(static=("response",))
def covariance(fields: Vectors, *, beta: Positive, response: Response = exact) -> Float[Array, "*batch D D"]:
    """Var = R^2 [(r / k) 1 + (1 - r^2 - D r / k) n n^T], k = beta R |h|, r = I_{D/2}(k) / I_{D/2-1}(k), n = h / |h|.

    The covariance of a spin, exact, with trace R^2 - |m|^2; without a field it is R^2 / D in every direction. Fields
    (..., D) give (..., D, D), and beta Var is the derivative of ``magnetization``. Raises ``ValueError`` as that does.
    Source: Bal (2023), appendix A.3, whose label app:var is left open there; derived here from
    beta Var = d phi / dh, see the chapter spin-transformers.

    >>> covariance([0.0, 3.0, 4.0], beta=1.0).shape
    (3, 3)
    """
    h = fields
    f, f1 = (gain[..., None, None] for gain in response.slopes(h, beta))
    unit = jnp.expand_dims(jnp.eye(h.shape[-1], dtype=h.dtype), tuple(range(h.ndim - 1)))
    return (f * unit + f1 * h[..., :, None] * h[..., None, :]) / beta


def covariance_large_d(fields: Vectors, *, beta: Positive) -> Float[Array, "*batch D D"]:
    """Var = 1 / (1 + gamma) - phi phi^T / (R^2 gamma), phi and gamma as in ``magnetization_large_d``.

    1/beta times the derivative of ``magnetization_large_d``. Its trace is R^2 - |m|^2 + 1 / gamma, though the sphere
    allows R^2 - |m|^2 only. Source: Bal (2023), label spinvariance.

    >>> covariance_large_d([0.0, 3.0, 4.0], beta=1.0).shape
    (3, 3)
    """
    return covariance(fields, beta=beta, response=large_d)


class _Draw(NamedTuple):
    key: PRNGKeyArray
    u: Array
    accepted: Array
    rounds: Array


@checked(static=())
def sample(key: Key, fields: Vectors, *, beta: Positive) -> Float[Array, "*batch D"]:
    """s with |s| = R and density proportional to exp(beta s . h).

    One draw of the von Mises-Fisher distribution for each field (..., D); the numbers depend on the key and the shape.
    By rejection: 1 / (acceptance) is below 2 for all D and fields, and each round draws all spins again that are left.
    Any finite field is allowed, however strong; under a trace a field that is not finite gives NaN without delay.
    Cost: D + 8 random numbers for each spin. Raises ``ValueError`` for D <= 2, NaN and beta <= 0.
    Source: Wood, Comm. Statist. 23 (1994) 157; the beta variable is a ratio after Marsaglia & Tsang (2000).

    >>> import jax
    >>> s = sample(jax.random.key(0), [0.0, 3.0, 4.0], beta=1.0)
    >>> s.shape, round(float(s @ s), 4)
    ((3,), 0.5)
    """
    h, dim = fields, fields.shape[-1]
    freedom = dim - 1
    scaled = balanced(h)
    length = jnp.sqrt(squared_length(scaled))
    # With r = (D - 1) / (2 beta R |h|) no field is too strong or too weak: x0 goes from 1 at r = 0 to 0 at infinity.
    scale = jnp.max(jnp.abs(scaled), axis=-1) / jnp.max(jnp.abs(h), axis=-1)
    r = freedom / (2 * math.sqrt(squared_radius(dim)) * length) * scale / beta
    r = jnp.where(length == 0, jnp.inf, r)
    root = jnp.sqrt(1 + r * r)
    x0 = 1 / (r + root)
    # 1 - x0 without cancellation; what is left of it decides how narrow the cone of a strong field is.
    rest = jnp.where(r < 1, (r + r * r / (1 + root)) * x0, 1 - x0)

    # Marsaglia and Tsang: shape * (1 + slope * normal)^3 is nearly a gamma variable of shape (D - 1) / 2.
    shape = freedom / 2 - 1 / 3
    slope = 1 / math.sqrt(9 * shape)

    def draw(state: _Draw) -> _Draw:
        key, normal_key, exponential_key = jax.random.split(state.key, 3)
        z, x = jnp.moveaxis(jax.random.normal(normal_key, (*length.shape, 2), h.dtype), -1, 0)
        v = (1 + slope * x) ** 3
        positive = jnp.where(v > 0, v, 1)
        # A component of a point drawn uniformly from the unit sphere.
        u = z / jnp.sqrt(z**2 + 2 * shape * positive)
        w = x0 * u
        # Both rejections at once.
        log_acceptance = x**2 / 2 + shape * (1 - positive + jnp.log(positive)) + freedom * (w / (1 + w) - jnp.log1p(w))
        accepted = (v > 0) & (-jax.random.exponential(exponential_key, length.shape, h.dtype) <= log_acceptance)
        return _Draw(key, jnp.where(state.accepted, state.u, u), state.accepted | accepted, state.rounds + 1)

    def unfinished(state: _Draw) -> Array:
        return ~jnp.all(state.accepted) & (state.rounds < _MAX_ROUNDS)

    key, tangent_key = jax.random.split(key)
    # A field of NaN has no direction, so the loop must not wait for it.
    start = _Draw(key, jnp.full_like(length, jnp.nan), ~jnp.isfinite(x0), jnp.zeros((), jnp.int32))
    last = jax.lax.while_loop(unfinished, draw, start)
    u = jnp.where(last.accepted, last.u, jnp.nan)

    # Without a field any direction will do.
    pole = jnp.zeros_like(h).at[..., 0].set(1)
    n = jnp.where(length[..., None] > 0, scaled / jnp.where(length > 0, length, 1)[..., None], pole)
    g = jax.random.normal(tangent_key, h.shape, h.dtype)
    g = g - jnp.sum(n * g, axis=-1, keepdims=True) * n
    tangent = g / jnp.linalg.norm(g, axis=-1, keepdims=True)
    along = (x0 + u) / (1 + x0 * u)
    across = jnp.sqrt(rest * (1 + x0) * (1 - u) * (1 + u)) / (1 + x0 * u)
    return math.sqrt(squared_radius(dim)) * (along[..., None] * n + across[..., None] * tangent)
