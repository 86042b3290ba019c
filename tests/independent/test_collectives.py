"""The response of spins whose couplings read the fields: the sum of states, differentiated by SymPy."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import sympy
import torch
from torch.autograd.functional import vjp

from companion import pages

BETA = sympy.Rational(7, 5)
QUERY, KEY = sympy.Rational(4, 5), sympy.Rational(-11, 10)
FIELDS = [sympy.Rational(1, 2), sympy.Rational(-1, 3), sympy.Rational(3, 4)]


def functions_of_the_page(*names):
    """The functions of the audit of these names, and those in the same cells."""
    cells = pages.load(Path(__file__).resolve().parents[2], "audits/collectives").code
    found = {"np": np, "torch": torch, "product": product, "vjp": vjp}
    for name in names:
        exec(next(cell for cell in cells if f"def {name}(" in cell), found)
    return found


def softmax_couplings(h):
    rows = [[sympy.exp(QUERY * KEY * a * b) for b in h] for a in h]
    return [[entry / sum(row) for entry in row] for row in rows]


def partition_function(J, h):
    total = 0
    for s in product((-1, 1), repeat=len(h)):
        energy = sum(J[m][n] * s[m] * s[n] for m in range(3) for n in range(3)) + sum(
            a * b for a, b in zip(h, s, strict=True)
        )
        total += sympy.exp(BETA * energy)
    return total


@pytest.mark.slow
def test_the_two_parts_of_the_response_are_those_of_the_differentiated_logarithm():
    # Claim collectives.coefficient: the two-point functions enter once for every ordered pair, without beta.
    h = sympy.symbols("h:3", real=True)
    J = sympy.Matrix(3, 3, sympy.symbols("J:9", real=True))
    F = -sympy.log(partition_function(J.tolist(), h)) / BETA
    at_fixed = {
        **dict(zip(h, FIELDS, strict=True)),
        **dict(zip(J, sympy.Matrix(softmax_couplings(FIELDS)), strict=True)),
    }
    expectation = [-F.diff(x).subs(at_fixed).evalf(50) for x in h]

    through = softmax_couplings(h)
    whole = -sympy.log(partition_function(through, h)) / BETA
    response = [-whole.diff(x).subs(dict(zip(h, FIELDS, strict=True))).evalf(50) for x in h]

    page = functions_of_the_page("one_spin", "states", "moments", "terms")
    fields = torch.tensor([[float(x)] for x in FIELDS], dtype=torch.float64)
    found = page["terms"](
        lambda h: torch.softmax(float(QUERY * KEY) * h @ h.T, -1), fields, page["states"](3, 1), float(BETA)
    )
    np.testing.assert_allclose(found[0][:, 0], [float(x) for x in expectation], rtol=1e-12)
    np.testing.assert_allclose(sum(found)[:, 0], [float(x) for x in response], rtol=1e-12)
