"""Arrays that the sources print, with all the digits that they show, and the solver that they were made with."""

from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from spinbook import sphere
from spinbook.spin_transformer import SpinTransformer

# Bal (2023), section "A simple JAX implementation": the first and last three rows and columns of what its cells print.
_SPIN_TRANSFORMER = {
    "module": """
        0.46483648 0.3805422 -0.44913006 0.02650307 -0.36570293 0.23443604
        -0.37061682 -0.42315483 0.1197958 0.6265602 -0.61598897 0.5583689
        0.21803643 0.17418407 0.22512378 -0.82831764 0.13957487 0.17361565
        -0.03738704 0.10310851 -0.12114237 -0.17507279 0.30361462 0.09653477
        0.4211655 -0.20545821 0.12954816 0.74708706 -0.35752055 -0.5818469
        1.149747 -0.6245326 -0.28383803 0.31866318 -0.13622926 0.52548647
    """,
    "gradient": """
        6.84143470e-06 1.26781670e-04 3.00350985e-05 -2.42774186e-05 6.56897682e-05 -1.09572255e-04
        2.77053477e-04 -1.62737968e-04 -9.00395680e-05 -8.95370322e-05 -4.99462512e-05 5.35702784e-05
        -1.52689070e-04 -1.44067290e-05 1.77498405e-05 -1.35530383e-04 7.19401141e-05 1.22722937e-04
        -4.90037055e-05 -1.04181963e-04 4.73747787e-06 -8.87275892e-05 -5.93782897e-06 -4.02471051e-05
        -4.34355170e-05 3.30054972e-05 1.77152877e-04 -1.20974844e-04 -1.17946729e-04 4.90189996e-06
        -3.79099110e-05 -1.06873820e-04 -8.71618904e-05 4.89293416e-05 8.51267905e-05 -1.46996666e-04
    """,
    "stack": """
        0.20396525 -0.06002701 -0.24426042 0.25347382 -0.01503923 -0.15146086
        -0.3552067 -0.4154298 -0.2159235 0.68296695 -0.18692644 0.20893992
        -0.03525298 -0.11836862 -0.13671912 -0.22646151 0.18905625 -0.05829766
        -0.11216182 -0.26305646 -0.31211302 0.27817503 0.25123474 -0.11120855
        0.17170963 -0.33360714 -0.12762357 0.70538384 -0.04229175 -0.5447842
        0.5191558 -0.5662918 -0.33646253 0.4568781 -0.04439414 0.18843232
    """,
}


def spin_transformer() -> dict[str, np.ndarray]:
    """The output of a module, its gradient and the output of a stack, as text: three arrays (6, 6) of strings.

    >>> spin_transformer()["module"][0, 0].item()
    '0.46483648'
    """
    return {
        name: np.array([row.split() for row in text.strip().splitlines()]) for name, text in _SPIN_TRANSFORMER.items()
    }


def corner(array: ArrayLike) -> np.ndarray:
    """The first and last three rows and columns, which is what a printed matrix shows.

    >>> corner(np.arange(100).reshape(10, 10))[0].tolist()
    [0, 1, 2, 7, 8, 9]
    """
    shown = [0, 1, 2, -3, -2, -1]
    return np.asarray(array)[np.ix_(shown, shown)]


def _updated(m: np.ndarray, J: np.ndarray, x: np.ndarray, beta: float) -> np.ndarray:
    """One update of TAP with the source's index: the formulas of its section 3.4 in turn, for one head."""

    def total(a: np.ndarray) -> np.ndarray:
        return np.sum(a, axis=1, keepdims=True)

    R2, squares, own = m.shape[1] / 2 - 1, J * J, total(m * m)
    g, drive = (R2 + own) / (R2 - own), x + J @ m
    v = drive - 2 * R2 / beta * m / (R2 - own)
    trace = total(v * v) + squares @ (R2 - own)
    turned = v * total(v * m) + total(squares) / (1 + g) * m - (squares * (m @ m.T)) @ m / (R2 * g)
    bend = (1 + 3 * g) / g**3 * total(m * turned) * m / R2 - (trace * m + 2 * turned) / (g**2 + g)
    bend += total(m * bend) / (R2 * g / (1 + g) - own) * m
    theta = drive + beta / R2 * (1 + g) / 2 * bend
    return beta * theta / (1 + np.sqrt(1 + beta**2 * total(theta * theta) / R2))


def _anderson(m: np.ndarray, J: np.ndarray, x: np.ndarray, beta: float, tol: float) -> np.ndarray:
    """The last update of Anderson's acceleration with five states, where the change of all of m is below ``tol``.

    As JAXopt has it: plain updates for five states; then the combination of the last five, with weights of sum one,
    whose changes cancel best.
    """
    states: list[np.ndarray] = []
    changes: list[np.ndarray] = []
    for _ in range(100):
        if len(states) == 5:
            d = np.stack(changes)
            overlaps = np.einsum("kid,lid->kl", d, d, optimize=True) + np.eye(5, dtype=m.dtype) * m.dtype.type(1e-5)
            weights = np.linalg.solve(overlaps, np.ones(5, m.dtype))
            m = np.tensordot(weights / weights.sum(), np.stack(states) + d, 1)
        after = _updated(m, J, x, beta)
        states, changes = [*states, m][-5:], [*changes, after - m][-5:]
        if np.linalg.norm(changes[-1]) < tol:
            break
        m = after
    return after


def solved_to(tol: float, stack: SpinTransformer, inputs: Float[ArrayLike, "N D"]) -> Float[np.ndarray, "N D"]:
    """The output of a stack whose heads are solved as the source's program does, which has ``tol`` = 1e-3.

    TAP with the source's index, from the answer to x + J m with all components of m equal and |m| = 1; the stack has a
    sphere for each head. Solved to rounding, the output has other digits from the fourth one on.
    """
    arrays, rest = eqx.partition(stack.modules, eqx.is_array)
    rows = np.asarray(inputs)
    for k in range(stack.depth):
        module = eqx.combine(jax.tree.map(lambda leaf, k=k: leaf[k], arrays), rest)
        couplings, beta = np.asarray(module.couplings(rows)), float(module.beta)
        fields = np.asarray(module.fields(rows)).reshape(len(rows), len(couplings), -1)
        heads = []
        for J, x in zip(couplings, fields.swapaxes(0, 1), strict=True):
            start = np.full_like(x, x.shape[1] ** -0.5)
            m = np.asarray(sphere.magnetization_large_d(x + J @ start, beta=x.dtype.type(beta)))
            heads.append(_anderson(m, J, x, beta, tol))
        rows = np.concatenate(heads, axis=1)
    return rows
