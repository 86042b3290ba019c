"""Handles claims: reads their declarations, records measurements, judges them, and makes the ledger.

``book/claims/CHAPTER.yml`` declares a claim with the value that is expected and a wrong answer to it, the rival; a page
or ``book/checks/NAME.py`` measures, and sees no declaration; ``judge`` compares, when pages are made.
"""

# ruff: noqa: F401  # What the rest of the press, and checks, take from here.
from __future__ import annotations

from companion.claims.judge import Measurement, factor, judge
from companion.claims.measure import RECORD, note, of_cell, recorded
from companion.claims.model import FAILED, KINDS, OWN, VERDICTS, WORDS, Claim
from companion.claims.read import check, check_book, declared, figures, files, items, of_book
from companion.claims.words import QUOTED, among, anchor_of, expectation_of, format_value, line, sentence, with_error
