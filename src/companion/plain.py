"""Captions and titles as plain text, for programs that know neither TeX nor the roles of Sphinx."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from pylatexenc.latex2text import LatexNodes2Text

__all__ = ["plain", "tex"]

_MATHEMATICS = re.compile(r"\$([^$]+)\$")
_ROLE = re.compile(r"\{[\w:-]+\}`(?:([^`<]+?)\s*<[^`]*>|([^`]*))`")
_EMPHASIS = re.compile(r"(\*\*|``?|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w))")


@cache
def _reader() -> LatexNodes2Text:
    return LatexNodes2Text(math_mode="text", strict_latex_spaces=True)


def plain(text: str) -> str:
    """Formulas as letters, roles as their words, no markup, one space between words.

    >>> plain(r"Error of {numref}`walks-spread` for couplings of variance $g^2/N$ at $\\beta=1$, *once*")
    'Error of walks-spread for couplings of variance g^2/N at β=1, once'
    """
    text = _ROLE.sub(lambda found: found[1] or found[2], text)
    text = _MATHEMATICS.sub(lambda found: tex(found[1]), text)
    return " ".join(_EMPHASIS.sub("", text).split())


@cache
def tex(formula: str) -> str:
    r"""A formula without its dollars, as letters and signs.

    >>> tex(r"\mathbf{m}_i = \tanh(\beta x)")
    'm_i = tanh(βx)'
    """
    # Bold and calligraphic letters are letters of their own in Unicode, which few programs can sort or search.
    return " ".join(_letters(_reader().latex_to_text(formula)).split())


def _letters(text: str) -> str:
    return "".join(
        unicodedata.normalize("NFKC", letter) if "MATHEMATICAL" in unicodedata.name(letter, "") else letter
        for letter in text
    )
