"""Computes what a token gives to the others in one layer, and what predictors explain of an output.

Attention weights are (H, N, N), and row i says to whom token i listens. States are (N, D), and weights of layers act
from the right, as in ``encoder``. All is computed in double precision. Nothing here runs a network.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbook.annotations import ArrayLike, Float


def contributions(
    attention: Float[ArrayLike, "H N N"], values: Float[ArrayLike, "H N d"], from_values: Float[ArrayLike, "Hd D"]
) -> Float[np.ndarray, "N N D"]:
    """C_ij = sum_h J^h_ij v^h_j W^h, what token i gets from token j, with W^h the rows of ``from_values`` of head h.

    Summed over j this is what attention adds, but for an offset. The induced term of a token is the sum without its
    own.

    >>> contributions(np.full((1, 2, 2), 0.5), np.ones((1, 2, 3)), np.eye(3)).shape
    (2, 2, 3)
    """
    J, v, W = (np.asarray(x, float) for x in (attention, values, from_values))
    given = np.einsum("hjd,hdD->hjD", v, W.reshape(*v.shape[::2], -1))
    return np.asarray(np.einsum("hij,hjD->ijD", J, given, optimize=True))


class Explained(NamedTuple):
    """A regression with one number for each predictor: ``coefficients``, the ``share`` of the squares that they explain
    on held-out tokens, and ``without``, the share when each predictor in turn is left out."""

    coefficients: Float[np.ndarray, " K"]
    share: float
    without: Float[np.ndarray, " K"]


def explained(output: Float[ArrayLike, "T D"], predictors: Float[ArrayLike, "K T D"], fitted: np.ndarray) -> Explained:
    """y_t = c + sum_k a_k x_kt, fitted by least squares on the tokens where ``fitted`` (T,) is True; c is a vector.

    The share is 1 - |y - fit|^2 / |y - mean|^2 on all other tokens, with the mean of the fitted ones; it is negative
    where the fit is worse than that mean. A predictor explains something of its own if the share falls without it.

    >>> x = np.random.default_rng(0).normal(size=(2, 40, 3))
    >>> found = explained(2 * x[0] - x[1], x, np.arange(40) < 20)
    >>> found.coefficients.round(6).tolist(), round(found.share, 6)
    ([2.0, -1.0], 1.0)
    """
    y, x, chosen = np.asarray(output, float), np.asarray(predictors, float), np.asarray(fitted, bool)
    y, x = y - y[chosen].mean(0), x - x[:, chosen].mean(1, keepdims=True)

    def fit(kept: list[int]) -> tuple[np.ndarray, float]:
        columns = x[kept]
        a, *_ = np.linalg.lstsq(columns[:, chosen].reshape(len(kept), -1).T, y[chosen].ravel(), rcond=None)
        left = y[~chosen] - np.tensordot(a, columns[:, ~chosen], 1)
        return a, 1 - float(np.sum(left**2) / np.sum(y[~chosen] ** 2))

    every = list(range(len(x)))
    a, share = fit(every)
    return Explained(a, share, np.array([fit([m for m in every if m != k])[1] if len(x) > 1 else 0.0 for k in every]))
