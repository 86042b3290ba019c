"""Reads the record of the transient, ``records/transient``: losses by use, courses, and errors of proxies in heads.

A row is named by the number of updates of the spins in training: "1", "2", "random", "inf" for the steady state with
the values as a start, "inf, values in the field", or "vanilla". A use is the number of updates afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from experiments.comparison.summary import markdown

_USES = {"inf": "steady state", "once": "once"}


def find(record: Mapping[str, Any], row: str, *, beta: float = 1.0, seed: int = 1) -> Mapping[str, Any]:
    """What the record says of a run. Raises ``ValueError`` where it has none.

    >>> find({"runs": []}, "1")
    Traceback (most recent call last):
        ...
    ValueError: row: expected one of the record at beta = 1 from seed 1, got 1
    """
    for run in record["runs"]:
        if (run["row"], run["beta"], run["seed"]) == (row, beta, seed):
            found: Mapping[str, Any] = run
            return found
    raise ValueError(f"row: expected one of the record at beta = {beta:g} from seed {seed}, got {row}")


def losses(record: Mapping[str, Any], row: str, use: str, *, beta: float = 1.0) -> dict[int, float]:
    """The held-out loss of each seed of a row with this use, in nats per character; that of guessing where it is null.

    Raises ``ValueError`` where the record has none.

    >>> run = {"row": "1", "beta": 1.0, "seed": 3, "uses": ["1", "inf"], "held_out": [2.0, None]}
    >>> losses({"runs": [run], "blind": 2.5}, "1", "inf")
    {3: 2.5}
    """
    found = {}
    for run in record["runs"]:
        if (run["row"], run["beta"]) == (row, beta) and use in run["uses"]:
            loss = run["held_out"][run["uses"].index(use)]
            found[int(run["seed"])] = float(record["blind"] if loss is None else loss)
    if not found:
        raise ValueError(f"row: expected one of the record, got {row} with {use} at {beta:g}")
    return found


def course(record: Mapping[str, Any], row: str, name: str, *, updates: int = 1) -> Float[np.ndarray, "looks layers"]:
    """``mismatch`` or ``irreversibility`` of the first seed after these ``updates``, in nats, summed over the heads.

    Raises ``ValueError`` for updates that the record did not keep: it has 1, 2, 4 and 12.
    """
    kept = record["kept_updates"]
    if updates not in kept:
        raise ValueError(f"updates: expected one of {kept}, got {updates}")
    values = np.array(find(record, row)[name], float)
    return np.asarray(values[:, :, kept.index(updates)].sum(axis=-1))


def loss_table(record: Mapping[str, Any]) -> str:
    """Markdown: the mean loss of each row with every number of updates, plus or minus half its interval of 95 %.

    >>> loss_table({"runs": []}).splitlines()[0]
    '| trained with | beta | seeds |'
    """
    rows = list(dict.fromkeys((run["beta"], run["row"]) for run in record["runs"]))
    uses = list(dict.fromkeys(use for run in record["runs"] for use in run["uses"]))
    body = []
    for beta, row in rows:
        cells, values = [], np.empty(0)
        for use in uses:
            if use not in next(run["uses"] for run in record["runs"] if run["row"] == row):
                cells.append("")
                continue
            values = np.array(list(losses(record, row, use, beta=beta).values()))
            half = float(stats.t.ppf(0.975, values.size - 1) * values.std(ddof=1) / math.sqrt(values.size))
            cells.append(f"{values.mean():.4f} ± {half:.4f}")
        body.append([row, "" if row == "vanilla" else f"{beta:g}", str(values.size), *cells])
    return markdown(["trained with", "beta", "seeds", *(_USES.get(use, use) for use in uses)], body, words=1)


class Errors(NamedTuple):
    """By layer and head, over all windows of the text.

    ``sigma``: estimated over sampled entropy production minus 1, with its standard error ``sigma_error`` over windows.
    ``delayed_rest``: the relative error of the mean-field delayed correlations, without the first site, which under a
    causal mask receives from itself alone. ``chi``: the mean response.
    """

    sigma: Float[np.ndarray, "L H"]
    sigma_error: Float[np.ndarray, "L H"]
    delayed_rest: Float[np.ndarray, "L H"]
    chi: Float[np.ndarray, "L H"]

    def within(self, tolerance: float) -> float:
        """The part of the heads whose entropy production is off by at most ``tolerance``."""
        return float(np.mean(np.abs(self.sigma) <= tolerance))


def errors(record: Mapping[str, Any], row: str, *, exact: bool = True) -> Errors:
    """What the record of heads says of a row; of the entropy production with the exact response or that at large D.

    The heads of a trained model are frozen on windows of the text, and their spins are sampled. A ratio is that of sums
    over windows, whose standard error is that of the residuals proxy - ratio x sampled; squared errors are averaged
    before the root is taken, of nothing less than zero.
    """
    data = {name: np.array(values, float) for name, values in record["rows"][row].items()}
    sampled, proxy = data["sigma"][..., 0], data["proxy"][..., int(exact)]
    ratio = proxy.sum(axis=0) / sampled.sum(axis=0)
    scatter = np.std(proxy - ratio * sampled, axis=0, ddof=1) / np.sqrt(len(sampled)) / sampled.mean(axis=0)
    delayed_rest = np.sqrt(np.maximum(data["delayed_rest"][..., 0].mean(axis=0), 0))
    return Errors(ratio - 1, scatter, delayed_rest, data["chi"].mean(axis=0))
