"""Offers what pages and the press need of claims: declare, measure, judge, and put into words.

``book/claims/CHAPTER.yml`` declares a claim with its published value and a wrong answer to it, the rival; a page of the
chapter calls ``measure``, which sees no declaration; ``judge`` compares, when pages are made. The declaration never
enters a measurement, and a measurement never changes a declaration; which was written first is not recorded.
"""

from __future__ import annotations

from companion.declaring.declaration import (
    KINDS,
    OWN,
    OWN_VERDICTS,
    SOFTWARE_CHECK,
    STATES,
    UNDECIDED,
    VERDICTS,
    Claim,
    Value,
    check,
    declared,
    of_book,
)
from companion.declaring.judgement import Judgement, Measurement, allowed, factor, judge
from companion.declaring.measuring import measure, recorded
from companion.declaring.words import QUOTED, among, anchor_of, expectation_of, format_value, line, sentence, with_error

__all__ = [
    "KINDS",
    "OWN",
    "OWN_VERDICTS",
    "QUOTED",
    "SOFTWARE_CHECK",
    "STATES",
    "UNDECIDED",
    "VERDICTS",
    "Claim",
    "Judgement",
    "Measurement",
    "Value",
    "allowed",
    "among",
    "anchor_of",
    "check",
    "declared",
    "expectation_of",
    "factor",
    "format_value",
    "judge",
    "line",
    "measure",
    "of_book",
    "recorded",
    "sentence",
    "with_error",
]
