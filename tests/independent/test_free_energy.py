"""Two spins on spheres: the exact integral, the saddle and the term beyond it, derived and computed here.

Unit vectors, Z / Z_0 the mean of exp(beta D (2 J s_1 . s_2 + h_1 . s_1 + h_2 . s_2)) over directions. Each length is
held by delta(s^2 - 1) = integral dt (beta D / 2 pi i) exp(-beta D t (s^2 - 1)); the spins are then Gaussian.
"""

import itertools

import mpmath
import pytest
import torch

from spinbook.free_energy import VectorSpinModel, exact

J, H, COSINE, BETA = "0.21", ("0.5", "0.8"), "0.3", "1.3"


def numbers():
    return mpmath.mpf(J), mpmath.mpf(H[0]), mpmath.mpf(H[1]), mpmath.mpf(COSINE), mpmath.mpf(BETA)


def in_double(dim):
    j, a, b, c, _ = (float(x) for x in numbers())
    h = torch.zeros(2, dim, dtype=torch.float64)
    h[0, 0], h[1, 0], h[1, 1] = a, b * c, b * (1 - c * c) ** 0.5
    return h, torch.tensor([[0.0, j], [j, 0.0]], dtype=torch.float64)


def log_mean(k, dim):
    """ln <exp(k u)> over one component u of a random unit vector, from the series of the Bessel function."""
    return mpmath.log(mpmath.hyp0f1(mpmath.mpf(dim) / 2, k * k / 4))


def integrated(dim):
    """ln Z / Z_0: the second spin done exactly, two angles of the first by quadrature."""
    j, a, b, c, beta = numbers()
    s = mpmath.sqrt(1 - c * c)
    scale = beta * dim

    def at(angle):
        # The plane of the two fields holds u, the cosine with h_1, and r v, a component of the rest across it.
        u, r = mpmath.cos(angle), mpmath.sin(angle)

        def across(other):
            v = mpmath.cos(other)
            along_second = c * u + s * r * v
            felt = mpmath.sqrt(b * b + 4 * j * j + 4 * j * b * along_second)
            weight = mpmath.exp(scale * a * u + log_mean(scale * felt, dim) - top)
            return weight * r ** (dim - 2) * mpmath.sin(other) ** (dim - 3)

        return mpmath.quadgl(across, [0, mpmath.pi])

    top = scale * (a + b + 2 * j)
    total = mpmath.quadgl(at, [0, mpmath.pi])
    # Of one direction: sin^(D-2) sin^(D-3) integrate to B(1/2, (D-1)/2) B(1/2, (D-2)/2).
    measure = mpmath.beta("0.5", mpmath.mpf(dim - 1) / 2) * mpmath.beta("0.5", mpmath.mpf(dim - 2) / 2)
    return mpmath.log(total / measure) + top


def saddle():
    """t*, the exponent per component there with that of free spins taken off, and the determinant of its Hessian."""
    j, a, b, c, beta = numbers()

    def phi(t, w):
        determinant = t * w - j * j
        field = (w * a * a + t * b * b + 2 * j * a * b * c) / determinant
        return beta * (t + w) - mpmath.log(determinant) / 2 + beta * field / 4

    def slope(t, w):
        return [mpmath.diff(phi, (t, w), (1, 0)), mpmath.diff(phi, (t, w), (0, 1))]

    t, w = mpmath.findroot(slope, (1 / beta + a, 1 / beta + b), tol=1e-40)
    second = [mpmath.diff(phi, (t, w), orders) for orders in [(2, 0), (1, 1), (0, 2)]]
    # Free spins: t = 1 / (2 beta), where phi is 2 (1/2 + ln(2 beta) / 2).
    return (t, w), phi(t, w) - 1 - mpmath.log(2 * beta), second[0] * second[2] - second[1] ** 2


def test_the_saddle_and_the_free_energy_at_it():
    place, exponent, _ = saddle()
    h, couplings = in_double(6)
    model = VectorSpinModel(2, 6, beta=float(BETA), couplings=couplings)
    found = model.saddle_point(h).value
    assert found.tolist() == pytest.approx([float(t) for t in place], rel=1e-9)
    assert float(model.free_energy(h)) == pytest.approx(-float(exponent) / float(BETA), abs=1e-10)


def test_the_exact_integral_of_the_library():
    with mpmath.workdps(18):
        h, couplings = in_double(6)
        assert float(exact.log_partition(h, couplings, beta=float(BETA))) == pytest.approx(
            float(integrated(6)), rel=1e-12
        )


def test_the_term_beyond_the_saddle_is_half_the_logarithm_of_a_determinant():
    # Claim free-energy.next-order-coefficient. Free spins have the Hessian 2 beta^2 in each t.
    _, exponent, determinant = saddle()
    predicted = -mpmath.log(determinant / (2 * mpmath.mpf(BETA) ** 2) ** 2) / 2
    h, couplings = in_double(6)
    gaps = []
    for dim in (200, 400, 800):
        h, couplings = in_double(dim)
        # The library's quadrature is good to 1e-12 of ln Z, which the test above holds.
        gaps.append(float(exact.log_partition(h, couplings, beta=float(BETA))) - dim * float(exponent))
    once = [2 * b - a for a, b in itertools.pairwise(gaps)]
    twice = (4 * once[1] - once[0]) / 3
    assert twice == pytest.approx(float(predicted), abs=abs(once[1] - twice))
    assert abs(once[1] - twice) < 1e-3 * abs(float(predicted))
