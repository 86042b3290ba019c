"""Handles claims: reads their declarations, records measurements, judges them, and makes the ledger.

``book/claims/CHAPTER.yml`` declares a claim with the value that is expected and a wrong answer to it, the rival; a page
or ``book/checks/NAME.py`` measures, and sees no declaration; ``judge`` compares, when pages are made.
"""

from __future__ import annotations

from companion.claims.judge import Judgement, Measurement, allowed, expected, factor, judge
from companion.claims.measure import RECORD, note, of_cell, recorded
from companion.claims.model import (
    KINDS,
    OWN,
    OWN_VERDICTS,
    UNDECIDED,
    VERDICTS,
    Claim,
    Comparison,
    Item,
)
from companion.claims.read import check, check_book, declared, figures, items, lines, of_book
from companion.claims.words import QUOTED, among, anchor_of, expectation_of, format_value, line, sentence, with_error

__all__ = [
    "KINDS",
    "OWN",
    "OWN_VERDICTS",
    "QUOTED",
    "RECORD",
    "UNDECIDED",
    "VERDICTS",
    "Claim",
    "Comparison",
    "Item",
    "Judgement",
    "Measurement",
    "allowed",
    "among",
    "anchor_of",
    "check",
    "check_book",
    "declared",
    "expectation_of",
    "expected",
    "factor",
    "figures",
    "format_value",
    "items",
    "judge",
    "line",
    "lines",
    "note",
    "of_book",
    "of_cell",
    "recorded",
    "sentence",
    "with_error",
]
