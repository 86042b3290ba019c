"""Defines what a claim is, with its fields and the rules that connect them.

``read`` makes claims of ``book/claims/CHAPTER.yml``:

- ``id``: CHAPTER.NAME; ``says``: one sentence, in our words; ``kind``: one of ``KINDS``.
- ``source``: ``key`` and ``where``, and of a text that was read a ``quote`` of at most 15 words, which nothing compares
  with the text; ``state`` of a claim whose text was superseded; ``commit`` of a program. Own claims have none.
- ``equation``, ``functions``: labels of the book, and functions of the library, that the claim is about.
- ``expects``: ``printed`` for what the source prints; else one of ``value``, ``below``, ``above``, ``between``, or
  ``accuracy`` of a deviation from an independent route. ``within`` is what may be missing to a value, or at an end.
- ``sampled``: yes for a standard error, else it is numerical; ``samples`` in few groups, largest of ``comparisons``.
- ``rival``: a wrong answer that a reader could believe. ``found``, of not-reproduced: our ``value``, ``within`` what,
  and the ``control``, a case where the statement is true.
- ``verdict``: one of ``VERDICTS``. ``because``: its reason, the route, and why the bound is as wide as it is.
- ``tex``, of a corrected formula: ``printed`` and ``corrected``. ``parts``, of partly: the claims that decide it.
- ``history``: ``was``, ids of before, and ``retired``, why it is no claim any more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

KINDS = ("number", "figure", "formula", "order", "statement", "program", "own")
"""What is compared. ``own`` is a result of the book and never counts among those of the sources."""
OWN = "own"
UNDECIDED = "undecided"
OWN_VERDICTS = ("result", "exploratory")
"""Of the book's own claims: planned or derived beforehand, and repeated; or unplanned."""


class Words(NamedTuple):
    """How the site writes a verdict: its mark, the heading of its list, and what a sentence and a legend say."""

    mark: str
    heading: str
    sentence: str = ""
    legend: str = ""


FAILED = "failed"
WORDS: Mapping[str, Words] = {
    FAILED: Words("!", "Not confirmed in this build"),
    "reproduced": Words("✓", "What held", "held as printed", "as the source says"),
    "partly": Words("◐", "What held in part", "held in part"),
    "corrected": Words("✎", "What did not hold as printed, and is corrected", "{were} corrected"),
    "not-reproduced": Words("✗", "What did not hold", "{were} not reproduced", "not as the source says"),
    UNDECIDED: Words("?", "What the measurement leaves undecided", "{were} left undecided"),
    "not-attempted": Words("–", "Not attempted", "{were} not attempted"),
    "result": Words(
        "■", "Results of this book, planned or derived beforehand and repeated", legend="a result of this book"
    ),
    "exploratory": Words("□", "What this book saw without having planned it", legend="a first look"),
}
"""The words of every verdict, in the order of the site; of a claim that its measurement does not confirm first."""
VERDICTS = tuple(name for name in WORDS if name != FAILED)
"""What is expected of a source's claim, and, last, of the book's own."""
WIDE = 0.1
"""A bound that is wider than this share of the printed value says why."""
ROUNDING = 1e-12
"""What double precision may lose in sums of some thousand numbers of order one; an accuracy beyond it says why."""
TARGETS = ("value", "below", "above", "between", "accuracy")
"""What a measured value should be, besides ``printed``. An accuracy is that of a deviation, which should be 0."""

Value = float | int | bool

_UNMEASURED = ("partly", "not-attempted")
_DISCRETE = ("statement", "program", OWN)
"""Kinds of which some are decided by a yes or no, where the fact is discrete."""
_DEVIATIONS = ("formula", "program", OWN)
"""Kinds that may be measured as a deviation from an independent route, which is zero if all is right."""


@dataclass(frozen=True)
class Claim:
    """One statement of a source, or of the book, as declared in ``book/claims/CHAPTER.yml``."""

    id: str
    says: str
    kind: str = ""
    verdict: str = ""
    source: Mapping[str, str] = field(default_factory=dict)
    equation: Sequence[str] = ()
    functions: Sequence[str] = ()
    expects: Mapping[str, Any] = field(default_factory=dict)
    sampled: bool | Mapping[str, int] = False
    rival: str = ""
    found: Mapping[str, Any] = field(default_factory=dict)
    because: str = ""
    tex: Mapping[str, str] = field(default_factory=dict)
    parts: Sequence[str] = ()
    history: Mapping[str, Any] = field(default_factory=dict)

    @property
    def chapter(self) -> str:
        """The chapter that measures the claim."""
        return self.id.partition(".")[0]

    @property
    def check(self) -> str:
        """The name of the function that measures the claim, if one of ``book/checks`` does."""
        return self.id.partition(".")[2].replace("-", "_")

    @property
    def was(self) -> Sequence[str]:
        """Ids that the claim had before."""
        return self.history.get("was", ())

    @property
    def retired(self) -> str:
        """Why the claim is no claim any more; "" for one that is."""
        return self.history.get("retired", "")

    @property
    def is_measured(self) -> bool:
        """Whether a page has to measure the claim."""
        return bool(self.verdict) and not self.retired and self.verdict not in _UNMEASURED


@dataclass(frozen=True)
class Item:
    """An item of a text: its section and kind, what it is, and where it is answered, or because of what it is not."""

    where: str
    kind: str
    says: str
    claims: Sequence[str]
    figures: Sequence[str]
    pages: Sequence[str]
    because: str


def broken_rules(claim: Claim, chapter: str) -> list[tuple[str, str]]:
    """Fields that do not go together with others of the same claim, each with what was expected and what came."""
    broken: list[tuple[str, str]] = []

    def want(right: Any, name: str, wanted: str, came: Any = None) -> None:
        if not right:
            broken.append((name, f"expected {wanted}, got {came or 'nothing'}"))

    kind, verdict, source, expects, found = claim.kind, claim.verdict, claim.source, claim.expects, claim.found
    want(claim.chapter == chapter, "id", f"it to begin with '{chapter}.'", claim.id)
    if claim.retired:
        return broken
    want(kind, "kind", f"one of {', '.join(KINDS)}")
    want(verdict, "verdict", f"one of {', '.join(VERDICTS)}")
    if not (kind and verdict):
        return broken
    measured, corrected, refuted = claim.is_measured, verdict == "corrected", verdict == "not-reproduced"
    is_program = kind == "program"

    want(source or kind == OWN, "source", f"key and where for the kind {kind}")
    want(not source or kind != OWN, "source", "none for the kind own", source)
    is_ours = verdict == UNDECIDED or (kind == OWN) == (verdict in OWN_VERDICTS)
    want(is_ours, "verdict", f"{', '.join(OWN_VERDICTS)} for the kind own and no other", f"{verdict} for {kind}")
    want(claim.because or verdict == "reproduced", "because", f"the reason of the verdict {verdict}")
    want(claim.because or kind != "formula" or not measured, "because", "the independent route to a formula")
    want("commit" in source or not (is_program and measured), "source", "commit, the version of a program", source)
    want("commit" not in source or is_program, "source", f"no commit for the kind {kind}", source)
    want(claim.tex or kind != "formula" or not corrected, "tex", "printed and corrected for a corrected formula")
    want(corrected or not claim.tex, "tex", f"none for the verdict {verdict}", "formulas")
    want(claim.parts or verdict != "partly", "parts", "the claims that decide it")
    want(not claim.parts or verdict == "partly", "parts", f"none for the verdict {verdict}", "ids")

    targets, printed = [name for name in TARGETS if name in expects], expects.get("printed")
    within, accuracy, (low, high) = expects.get("within", 0.0), expects.get("accuracy"), expects.get("between", (0, 1))
    right = "the right value" if corrected else f"printed or one of {', '.join(TARGETS)}"
    is_there = targets or (printed is not None and not corrected)
    want(is_there or not measured, "expects", right, expects)
    want(len(targets) < 2, "expects", f"one of {', '.join(TARGETS)}", " and ".join(targets))
    alone = printed is None or not targets or (corrected and targets == ["value"])
    want(alone, "expects", "printed alone, or value beside it in a correction", expects)
    want(printed is not None or kind != "number", "expects", "printed, the number in the text", expects)
    want(printed is None or kind not in ("formula", OWN), "expects", f"nothing printed for the kind {kind}", printed)
    is_discrete = any(isinstance(expects.get(name), bool) for name in ("printed", "value"))
    want(not is_discrete or kind in _DISCRETE, "expects", f"a number for the kind {kind}", "a yes or no")
    want(accuracy is None or kind in _DEVIATIONS, "expects", f"no accuracy for the kind {kind}", expects)
    want(accuracy is None or "within" not in expects, "expects", "accuracy or within", "both")
    want(low < high, "expects", "between: [A, B] with A < B", [low, high])
    narrow = 0.0 if printed is None else math.inf if is_discrete or not printed else WIDE * abs(printed)
    want(claim.because or within <= narrow, "because", "the reason of so wide a bound")
    want(claim.because or (accuracy or 0.0) <= ROUNDING, "because", "the reason of more than rounding")

    has_rival = claim.rival or (corrected and printed is not None)
    want(has_rival or refuted or not measured, "rival", "a wrong answer that a reader could believe")
    want(not claim.rival or not refuted, "rival", "a control, under found, in its place", "a rival")
    want(found or not refuted, "found", "value, within and control")
    want(not found or refuted, "found", f"none for the verdict {verdict}", found)
    want(not found or "within" in found or isinstance(found["value"], bool), "found", "within beside a number", found)
    idle = {"rival": claim.rival, "sampled": claim.sampled, "expects": set(expects) - {"printed"}}
    for name in (name for name, given in idle.items() if given and not measured):
        want(False, name, f"none, since the verdict {verdict} measures nothing", "one")
    return broken
