"""The response of spins whose couplings read the fields: the sum of states, differentiated with fifty digits."""

from itertools import product
from pathlib import Path

import mpmath
import numpy as np
import torch
from torch.autograd.functional import vjp

from companion import pages

BETA, QUERY, KEY = "1.4", "0.8", "-1.1"
FIELDS = [0.5, -0.25, 0.75]


def functions_of_the_page(*names):
    """The functions of the audit of these names, and those in the same cells."""
    cells = pages.load(Path(__file__).resolve().parents[2], "audits/collectives").code
    found = {"np": np, "torch": torch, "product": product, "vjp": vjp}
    for name in names:
        exec(next(cell for cell in cells if f"def {name}(" in cell), found)
    return found


def softmax_couplings(h):
    rows = [[mpmath.exp(mpmath.mpf(QUERY) * mpmath.mpf(KEY) * a * b) for b in h] for a in h]
    return [[entry / sum(row) for entry in row] for row in rows]


def free_energy(J, h):
    beta, total = mpmath.mpf(BETA), 0
    for s in product((-1, 1), repeat=len(h)):
        energy = sum(J[m][n] * s[m] * s[n] for m in range(3) for n in range(3)) + sum(
            a * b for a, b in zip(h, s, strict=True)
        )
        total += mpmath.exp(beta * energy)
    return -mpmath.log(total) / beta


def test_the_two_parts_of_the_response_are_those_of_the_differentiated_logarithm():
    # Claim collectives.coefficient: the two-point functions enter once for every ordered pair, without beta.
    with mpmath.workdps(50):
        J = softmax_couplings(FIELDS)
        first = [tuple(row) for row in np.eye(3, dtype=int).tolist()]
        expectation = [-mpmath.diff(lambda *h: free_energy(J, h), FIELDS, n) for n in first]
        response = [-mpmath.diff(lambda *h: free_energy(softmax_couplings(h), h), FIELDS, n) for n in first]

    page = functions_of_the_page("one_spin", "states", "moments", "terms")
    fields = torch.tensor([[x] for x in FIELDS], dtype=torch.float64)
    found = page["terms"](
        lambda h: torch.softmax(float(QUERY) * float(KEY) * h @ h.T, -1), fields, page["states"](3, 1), float(BETA)
    )
    np.testing.assert_allclose(found[0][:, 0], [float(x) for x in expectation], rtol=1e-12)
    np.testing.assert_allclose(sum(found)[:, 0], [float(x) for x in response], rtol=1e-12)
