"""Puts claims and their verdicts into words: on their page, in the ledger, in a terminal."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from companion.claims.judge import Measurement, expected, judge
from companion.claims.model import FAILED, OWN, WORDS, Claim, Value
from companion.manuscript import spaced
from companion.plain import typeset

QUOTED = re.compile(
    r"(?P<id>[a-z0-9-]+\.[a-z0-9-]+)(?: (?P<what>rival|control|uncertainty))?(?::(?P<format>[^\s{}$]+))?"
)
"""How prose asks for the number of a claim: ID, ID:FORMAT, or ID rival:FORMAT."""


def among(entries: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """The entries of a ledger as totals count them, each once.

    ``said`` by the sources; ``parts`` of what is counted there already; ``external``, said by other works; and
    ``own`` results of the book.
    """
    parts = {part for entry in entries for part in entry["parts"]}
    found: dict[str, list[Mapping[str, Any]]] = {name: [] for name in ("said", "parts", "external", "own")}
    for entry in entries:
        is_part = parts.intersection((entry["id"], *entry["was"]))
        name = "parts" if is_part else "external" if entry["external"] else "said"
        found["own" if entry["kind"] == OWN else name].append(entry)
    return found


def anchor_of(id: str) -> str:
    """The HTML anchor of a claim."""
    return "claim-" + id.replace(".", "-")


def format_value(value: Value | None, digits: int = 6) -> str:
    """A value as readers see it: yes, no, or a number with ``digits`` significant digits."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.{digits}g}" if math.isfinite(value) else "diverges"


def with_error(value: Value | None, uncertainty: float | None) -> str:
    """A value with its uncertainty, where it has one."""
    return format_value(value) + (f" ± {uncertainty:.1g}" if uncertainty else "")


def plain(measurement: Measurement) -> str:
    """The numbers alone."""
    said = f"measured {with_error(measurement.value, measurement.uncertainty)}"
    for name in ("rival", "control"):
        if (other := getattr(measurement, name)) is not None:
            value, uncertainty = other if isinstance(other, tuple) else (other, 0.0)
            said += f", {name} {with_error(value, uncertainty)}"
    return said


def wanted(claim: Claim) -> str:
    """What the measured value is compared with: printed, corrected, or expected by us."""
    printed, is_corrected = claim.expects.get("printed"), claim.verdict == "corrected"
    said = "" if printed is None else f"published {format_value(printed)}"
    if is_corrected and "value" in claim.expects:
        return f"{said}{', ' if said else ''}corrected {format_value(claim.expects['value'])}"
    if said or "accuracy" in claim.expects:
        return said or "a deviation, which should be 0"
    return f"expected {expectation_of(expected(claim))}"


def expectation_of(values: Mapping[str, Any]) -> str:
    """The values that count as right: one of value, above, below and between, as ``expected`` has it."""
    ((name, value),) = values.items()
    if name == "between":
        return f"between {format_value(value[0])} and {format_value(value[1])}"
    return format_value(value) if name == "value" else f"{name} {format_value(value)}"


def sentence(claim: Claim, measurement: Measurement) -> tuple[str, str]:
    """The state (for the style sheet) and the words of a claim's line."""
    verdict = judge(claim, measurement)
    said = f"{plain(measurement)}, {wanted(claim)}"
    if verdict.gap is not None and not isinstance(measurement.value, bool):
        said += f", gap {verdict.gap:.2g}, bound {verdict.bound:.2g}"
        said += "" if verdict.z is None else f", z {verdict.z:.2g}"
    if verdict.holds is False:
        return FAILED, f"{said}: not confirmed: {verdict.reason}."
    return claim.verdict, f"{said}: {claim.verdict.replace('-', ' ')}."


def line(claim: Claim, measurement: Measurement, ledger: str) -> tuple[str, str]:
    """The line that a page shows in place of bare numbers, as HTML and as text; ``ledger`` is the address of all."""
    state, said = sentence(claim, measurement)
    id, says, anchor = claim.id, spaced(claim.says), anchor_of(claim.id)
    older = "".join(f'<span id="{anchor_of(old)}"></span>' for old in claim.was)
    rival = ""
    if claim.rival or claim.found:
        name, words = ("Rival", claim.rival) if claim.rival else ("Control", claim.found["control"])
        rival = f'<span class="book-claim-rival">{name}: {typeset(words)}.</span> '
    markup = (
        f'<div class="book-claim book-claim-{state}" id="{anchor}">{older}'
        f'<span class="book-claim-mark" aria-hidden="true">{WORDS[state].mark}</span>'
        f'<a class="book-claim-id" href="{ledger}#ledger-{anchor}">{html.escape(id)}</a> '
        f"{typeset(says)} {rival}"
        f'<span class="book-claim-outcome">{html.escape(said[0].upper() + said[1:])}</span></div>'
    )
    return markup, f"Claim {id}: {says} {said}"
