"""What a token gives to the others in one layer, what comes back to it in the next, and what either explains.

Attention weights are (H, N, N), and row i says to whom token i listens. States are (N, D), and weights of layers act
from the right, as in ``encoder``. All is computed in double precision. Nothing here runs a network.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbook import validate
from spinbook.annotations import ArrayLike, Float

__all__ = ["Explained", "contributions", "echo", "explained"]

_LARGEST = 1e75
"""Squares of sums of squares of larger numbers could overflow."""


def contributions(
    attention: Float[ArrayLike, "H N N"], values: Float[ArrayLike, "H N d"], from_values: Float[ArrayLike, "Hd D"]
) -> Float[np.ndarray, "N N D"]:
    """C_ij = sum_h J^h_ij v^h_j W^h, what token i gets from token j, with W^h the rows of ``from_values`` of head h.

    Summed over j this is what attention adds, but for an offset. The induced term of a token is the sum without its
    own. Raises ``ValueError`` for shapes that do not fit.

    >>> contributions(np.full((1, 2, 2), 0.5), np.ones((1, 2, 3)), np.eye(3)).shape
    (2, 2, 3)
    """
    arguments = {"attention": attention, "values": values, "from_values": from_values}
    J, v, W = (validate.known_numbers(x, name) for name, x in arguments.items())
    fits = J.ndim == 3 == v.ndim and J.shape == (*v.shape[:2], v.shape[1]) and W.ndim == 2
    if not fits or len(W) != len(v) * v.shape[2]:
        raise ValueError(
            "attention, values, from_values: expected (H, N, N), (H, N, d) and (H d, D), "
            f"got {J.shape}, {v.shape} and {W.shape}"
        )
    given = np.einsum("hjd,hdD->hjD", v, W.reshape(*v.shape[::2], -1))
    return np.asarray(np.einsum("hij,hjD->ijD", J, given, optimize=True))


def echo(
    given: Float[ArrayLike, "N N D"],
    attention: Float[ArrayLike, "H N N"],
    to_values: Float[ArrayLike, "D Hd"],
    from_values: Float[ArrayLike, "Hd D"],
) -> Float[np.ndarray, "N D"]:
    """E_i = sum_(j != i) sum_h J^h_ij (G_ji V^h) W^h, where G_ji is what the state of j holds of token i.

    What comes back to a token, in the next attention and through others, of what it gave them before: the term that
    the reaction of Onsager takes out of a mean field. ``given``: ``contributions`` carried on to the input of the next
    attention. Weights are held fixed. Raises ``ValueError`` for shapes that do not fit.

    >>> one = np.eye(2)
    >>> echo(np.ones((2, 2, 2)), [[[0.5, 0.5], [0.5, 0.5]]], one, one).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    arguments = {"given": given, "attention": attention, "to_values": to_values, "from_values": from_values}
    G, J, V, W = (validate.known_numbers(x, name, largest=_LARGEST) for name, x in arguments.items())
    N, D = (G.shape[0], G.shape[-1]) if G.ndim else (0, 0)
    fits = G.shape == (N, N, D) and J.ndim == 3 and W.ndim == 2 and J.size > 0
    if not (fits and J.shape[1:] == (N, N) and V.shape == (D, len(W)) and len(W) % len(J) == 0):
        raise ValueError(
            "given, attention, to_values, from_values: expected shapes (N, N, D), (H, N, N), (D, H d) and (H d, D), "
            f"got {G.shape}, {J.shape}, {V.shape} and {W.shape}"
        )
    others = J * (1 - np.eye(N, dtype=J.dtype))
    values = (G.reshape(N * N, D) @ V).reshape(N, N, len(J), -1)
    return np.asarray(np.einsum("hij,jihd->ihd", others, values, optimize=True).reshape(N, -1) @ W)


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
    Raises ``ValueError`` for shapes that do not fit, and where no token is fitted or none is held out.

    >>> x = np.random.default_rng(0).normal(size=(2, 40, 3))
    >>> found = explained(2 * x[0] - x[1], x, np.arange(40) < 20)
    >>> found.coefficients.round(6).tolist(), round(found.share, 6)
    ([2.0, -1.0], 1.0)
    """
    y, x = (
        validate.known_numbers(given, name, largest=_LARGEST)
        for name, given in {"output": output, "predictors": predictors}.items()
    )
    if y.ndim != 2 or y.shape[0] < 2 or y.shape[1] < 1:
        raise ValueError(f"output: expected vectors (T, D) of two tokens or more, got shape {y.shape}")
    chosen = np.asarray(fitted, bool)
    if x.ndim != 3 or x.shape[1:] != y.shape or chosen.shape != y.shape[:1]:
        raise ValueError(
            f"predictors, fitted: expected shapes (K, {y.shape[0]}, ...) and ({y.shape[0]},) as output {y.shape}, "
            f"got {x.shape} and {chosen.shape}"
        )
    if chosen.all() or not chosen.any():
        raise ValueError("fitted: expected some tokens to fit and some to hold out, got only one of both")
    y, x = y - y[chosen].mean(0), x - x[:, chosen].mean(1, keepdims=True)
    if np.sum(y[~chosen] ** 2) == 0:
        raise ValueError("output: expected tokens whose squared distance from the mean can be told from zero, got none")

    def fit(kept: list[int]) -> tuple[np.ndarray, float]:
        columns = x[kept]
        a, *_ = np.linalg.lstsq(columns[:, chosen].reshape(len(kept), -1).T, y[chosen].ravel(), rcond=None)
        left = y[~chosen] - np.tensordot(a, columns[:, ~chosen], 1)
        return a, 1 - float(np.sum(left**2) / np.sum(y[~chosen] ** 2))

    every = list(range(len(x)))
    a, share = fit(every)
    return Explained(a, share, np.array([fit([m for m in every if m != k])[1] if len(x) > 1 else 0.0 for k in every]))
