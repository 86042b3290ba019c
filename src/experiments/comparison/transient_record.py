"""The record of the transient as it was run, and what it comes to: losses by use, limits, courses.

The answers are those of ``transient_questions``; here they are set out. A loss that is no number counts as that of
guessing, as it does there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from experiments import designs, records
from experiments.comparison import judging, transient_questions
from experiments.comparison.judging import Paired
from experiments.comparison.summary import markdown
from experiments.comparison.transient_questions import Answer, Contrast, Question, Term

__all__ = [
    "KEPT",
    "Limits",
    "Place",
    "answer_table",
    "by_seed",
    "by_use",
    "course",
    "difference",
    "find",
    "instead",
    "limits",
    "loss_table",
    "losses",
    "recorded",
    "recorded_heads",
    "slim",
    "spread_over_uses",
]

_ARTIFACT, _SAMPLE, _HEADS = "transient.json.gz", "transient-sample.json.gz", "heads.json.gz"
KEPT = (1, 2, 4, 12)
"""The numbers of updates at which a record that was made slim has mismatch and irreversibility."""
_PATHS = ("mismatch", "irreversibility")
_USES = {"inf": "steady state", "once": "once"}


def recorded(*, sample: bool = False) -> dict[str, Any]:
    """The runs of ``comparison.transient``, complete or not, from the file beside this module, made ``slim``.

    ``sample``: those of ``transient.SMOKE``, whose text comes with the library, so that they can be made again
    anywhere. Raises ``FileNotFoundError`` where the library has no record.

    >>> recorded(sample=True)["complete"]
    True
    """
    return records.beside("experiments.comparison", _SAMPLE if sample else _ARTIFACT)


def recorded_heads() -> dict[str, Any]:
    """What ``experiments.comparison.trained_heads`` sampled, from the file beside this module.

    Raises ``FileNotFoundError`` where the library has no record.
    """
    return records.beside("experiments.comparison", _HEADS)


def slim(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with mismatch and irreversibility after ``KEPT`` updates only, and with the checksum of the whole.

    What is asked of a record needs no more, and it is a third of the size. One that is slim stays as it is.

    >>> slim({"runs": [], "sha256": "a"})["whole"]
    'a'
    """
    if "kept_updates" in record:
        return dict(record)

    def thinned(run: Mapping[str, Any]) -> dict[str, Any]:
        paths = {
            name: [[[layer[k - 1] for k in KEPT] for layer in look] for look in run[name]]
            for name in _PATHS
            if name in run
        }
        return dict(run) | paths

    rest = {name: value for name, value in record.items() if name != "sha256"}
    runs = [thinned(run) for run in record["runs"]]
    return rest | {"runs": runs, "kept_updates": list(KEPT), "whole": record.get("sha256")}


@designs.record()
class Place(NamedTuple):
    """A row, named as ``transient.Row.name`` has it, at an inverse temperature, and the use of which the loss is."""

    row: str
    use: str
    beta: float = 1.0


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


def losses(record: Mapping[str, Any], place: Place) -> dict[int, float]:
    """The held-out loss of each seed in this place, in nats per character. Raises ``ValueError`` where there is none.

    >>> run = {"row": "1", "beta": 1.0, "seed": 3, "uses": ["1", "inf"], "held_out": [2.0, None]}
    >>> losses({"runs": [run], "blind": 2.5}, Place("1", "inf"))
    {3: 2.5}
    """
    found = {}
    for run in record["runs"]:
        if (run["row"], run["beta"]) == (place.row, place.beta) and place.use in run["uses"]:
            loss = run["held_out"][run["uses"].index(place.use)]
            found[int(run["seed"])] = float(record["blind"] if loss is None else loss)
    if not found:
        raise ValueError(f"place: expected one of the record, got {place.row} with {place.use} at {place.beta:g}")
    return found


def difference(record: Mapping[str, Any], ours: Place, theirs: Place) -> Paired:
    """loss(ours) - loss(theirs), paired by the seeds that both have, with the interval of 95 %.

    Raises ``ValueError`` for places of which the record has none, and for fewer than two seeds in common.
    """
    ours_by_seed, theirs_by_seed = losses(record, ours), losses(record, theirs)
    seeds = sorted(ours_by_seed.keys() & theirs_by_seed.keys())
    if len(seeds) < 2:
        raise ValueError(f"theirs: expected at least two seeds in common with ours, got {len(seeds)}")
    return judging.paired([ours_by_seed[s] for s in seeds], [theirs_by_seed[s] for s in seeds])


def by_use(record: Mapping[str, Any], row: str, reference: Place, *, beta: float = 1.0) -> dict[str, Paired]:
    """Of a row with every number of updates: its loss minus that of the ``reference``, by use.

    Raises ``ValueError`` for a row of which the record has no run.
    """
    uses = next((run["uses"] for run in record["runs"] if (run["row"], run["beta"]) == (row, beta)), None)
    if uses is None:
        raise ValueError(f"row: expected one of the record at beta = {beta:g}, got {row}")
    return {use: difference(record, Place(row, use, beta), reference) for use in uses}


def spread_over_uses(record: Mapping[str, Any], row: str, *, beta: float = 1.0) -> tuple[Paired, str, str]:
    """The largest difference of two uses of a row, of means over seeds, and which two: the worse one, the better one.

    Chosen as the largest, so that its interval is too narrow for a verdict.
    """
    found = find(record, row, beta=beta, seed=min(r["seed"] for r in record["runs"] if r["row"] == row))
    means = {use: float(np.mean(list(losses(record, Place(row, use, beta)).values()))) for use in found["uses"]}
    worst, best = max(means, key=lambda use: means[use]), min(means, key=lambda use: means[use])
    return difference(record, Place(row, worst, beta), Place(row, best, beta)), worst, best


def by_seed(record: Mapping[str, Any], contrast: Contrast, *, beta: float = 1.0) -> dict[int, float]:
    """sum_k sign_k loss(row_k, use_k) of every seed that has all of them.

    >>> from experiments.comparison.transient_questions import QUESTIONS
    >>> run = {"row": "1", "beta": 1.0, "seed": 1, "uses": ["1", "inf"], "held_out": [2.0, 2.25]}
    >>> by_seed({"runs": [run], "blind": 3.0}, QUESTIONS[0].contrasts[0])
    {1: 0.25}
    """
    terms = [(term.sign, losses(record, Place(term.row, term.use, beta))) for term in contrast.terms]
    seeds = sorted(set.intersection(*(set(found) for _, found in terms)))
    return {seed: sum(sign * found[seed] for sign, found in terms) for seed in seeds}


def instead(question: Question, places: Mapping[tuple[str, str], tuple[str, str]]) -> Question:
    """The question asked of other rows or uses: every term at (row, use) that is among ``places`` moves to its value.

    Raises ``ValueError`` for a place that the question does not have.

    >>> from experiments.comparison.transient_questions import QUESTIONS
    >>> instead(QUESTIONS[0], {("1", "inf"): ("1", "8")}).contrasts[0].terms[0]
    Term(sign=1, row='1', use='8')
    """
    there = {(term.row, term.use) for contrast in question.contrasts for term in contrast.terms}
    for place in places:
        if place not in there:
            raise ValueError(f"places: expected some of {sorted(there)}, got {place}")

    def moved(contrast: Contrast) -> Contrast:
        terms = [Term(term.sign, *places.get((term.row, term.use), (term.row, term.use))) for term in contrast.terms]
        return contrast._replace(terms=tuple(terms))

    return question._replace(contrasts=tuple(moved(contrast) for contrast in question.contrasts))


class Limits(NamedTuple):
    """Where the differences of a question lie, at the levels of its verdict.

    ``low`` is above the margin just where the tests say *yes*, ``high`` below it just where they say *no*; an answer
    that rests on failed runs may be undecided all the same. ``least`` is the smallest mean difference.
    """

    low: float
    high: float
    least: float


def limits(answer: Answer) -> Limits:
    """min_c (d_c - t_a s_c), min_c (d_c + t_b s_c) and min_c d_c over the contrasts c of a question.

    With standard errors s_c, and Student's t at the level a of one look and at b = a over the number of contrasts,
    one-sided: all contrasts have to be above the margin for *yes*, and one below it, after Bonferroni's correction, is
    enough for *no*.
    """
    level = transient_questions.LEVEL / len(transient_questions.SEEDS)
    found = [finding.difference for finding in answer.findings]
    spread = {level: 0.0, level / len(found): 0.0}
    for share in spread:
        spread[share] = float(stats.t.isf(share, found[0].num_pairs - 1))
    return Limits(
        low=min(d.mean - spread[level] * d.standard_error for d in found),
        high=min(d.mean + spread[level / len(found)] * d.standard_error for d in found),
        least=min(d.mean for d in found),
    )


def course(
    record: Mapping[str, Any], row: str, name: str, *, updates: int = 1, beta: float = 1.0
) -> Float[np.ndarray, "looks layers"]:
    """``mismatch`` or ``irreversibility`` of the first seed after these ``updates``, in nats, summed over the heads.

    Between one and twelve updates in a whole record, of ``KEPT`` in a slim one. Raises ``ValueError`` for others.
    """
    kept = record.get("kept_updates") or list(range(1, 13))
    if name not in _PATHS:
        raise ValueError(f"name: expected one of {', '.join(_PATHS)}, got {name}")
    if updates not in kept:
        raise ValueError(f"updates: expected one of {kept}, got {updates}")
    values = np.array(find(record, row, beta=beta)[name], float)
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
        cells, seeds = [], 0
        for use in uses:
            try:
                values = np.array(list(losses(record, Place(row, use, beta)).values()))
            except ValueError:
                cells.append("")
                continue
            seeds = values.size
            half = float(stats.t.ppf(0.975, seeds - 1) * values.std(ddof=1) / math.sqrt(seeds)) if seeds > 1 else 0.0
            cells.append(f"{values.mean():.4f}" + (f" ± {half:.4f}" if seeds > 1 else ""))
        body.append([row, "" if row == "vanilla" else f"{beta:g}", str(seeds), *cells])
    return markdown(["trained with", "beta", "seeds", *(_USES.get(use, use) for use in uses)], body, words=1)


def answer_table(answers: Sequence[Answer]) -> str:
    """Markdown: every contrast with its interval of 95 % in nats, and what it and its question are decided to be.

    >>> print(answer_table([]).splitlines()[0])
    | question | contrast | difference, 95 % interval | seeds | failed | verdict | answer |
    """
    body = []
    for answer in answers:
        for k, finding in enumerate(answer.findings):
            d = finding.difference
            decided = answer.decision + ("" if answer.final else ", provisional")
            body.append(
                [
                    answer.question.name if k == 0 else "",
                    finding.contrast.name,
                    f"{d.mean:+.4f} ({d.low:+.4f} to {d.high:+.4f})",
                    str(d.num_pairs),
                    str(len(finding.failed)),
                    finding.decision,
                    f"**{decided}**" if k == 0 else "",
                ]
            )
    header = ["question", "contrast", "difference, 95 % interval", "seeds", "failed", "verdict", "answer"]
    return markdown(header, body, words=2)
