"""Turns captions and titles into plain text, for programs without TeX or roles, and the words of claims into HTML.

Claims write their formulas in ASCII, so that terminals and programs can show them; readers of a page see them set.
"""

from __future__ import annotations

import html
import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylatexenc.latex2text import LatexNodes2Text

_MATHEMATICS = re.compile(r"\$([^$]+)\$")
_ROLE = re.compile(r"\{[\w:-]+\}`(?:([^`<]+?)\s*<[^`]*>|([^`]*))`")
_NAMES = """alpha beta gamma delta epsilon theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega
    Gamma Delta Theta Lambda Sigma Phi Psi Omega"""
_LETTERS = dict(zip(_NAMES.split(), "αβγδεθκλμνξπρστφχψωΓΔΘΛΣΦΨΩ", strict=True))
# Not within a word or a name with dots or hyphens, such as the id of a claim.
_LETTER = re.compile(rf"(?<![A-Za-z.])(?<![A-Za-z]-)({'|'.join(_LETTERS)})(?![A-Za-z]|-[a-z])")
_POWER = re.compile(r"(?<=[\w)\]|'])\^(?:\(((?:[^()]|\([^()]*\))*)\)|(-?[A-Za-z0-9α-ω]+))")
_INDEX = re.compile(r"((?<![\w.])d?[A-Za-zα-ωΓ-Ω∑∏]|</sup>|\])_(?:\(([^()]*)\)|([α-ω]|[A-Za-z0-9]{1,4})(?![\w]))")
_ROOT = re.compile(r"\bsqrt\(([^()]*)\)")
_EXPONENT = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]?\d+)\b")
_LETTER_OF_INDEX = re.compile(r"(mu|nu|sigma)$")
_SIGNS = {"+-": "±", "&gt;=": "≥", "&lt;=": "≤", "-&gt;": "→", " - ": " − "}
_MINUS = re.compile(r"(?<![\w\-)/|>])-(?=[\w(|√∑∏])")
_EMPHASIS = re.compile(r"(\*\*|``?|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w))")


@cache
def _reader() -> "LatexNodes2Text":
    # Kernels show the words of claims, for which it is not needed.
    from pylatexenc.latex2text import LatexNodes2Text

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
    letters = (
        unicodedata.normalize("NFKC", letter) if "MATHEMATICAL" in unicodedata.name(letter, "") else letter
        for letter in _reader().latex_to_text(formula)
    )
    return " ".join("".join(letters).split())


@cache
def typeset(text: str) -> str:
    """Words as HTML, with the formulas among them that are written in ASCII as letters, signs, powers and indices.

    >>> typeset("The error falls as 1/sqrt(N) for beta^2 J_ij < 5e-3")
    'The error falls as 1/√N for β<sup>2</sup> J<sub>ij</sub> &lt; 5 × 10<sup>−3</sup>'
    """
    words = html.escape(" ".join(text.split()))
    words = re.sub(r"\b(sum|prod)_", lambda found: {"sum": "∑_", "prod": "∏_"}[found[1]], words)
    words = _LETTER.sub(lambda found: _LETTERS[found[1]], words)
    for ascii_sign, sign in _SIGNS.items():
        words = words.replace(ascii_sign, sign)
    words = _EXPONENT.sub(
        lambda found: (found[1] + " × ") * (found[1] != "1") + f"10{_raised(str(int(found[2])))}", words
    )
    words = _POWER.sub(lambda found: _raised(found[1] or found[2]), words)
    words = _INDEX.sub(lambda found: f"{found[1]}<sub>{_lowered(found[2] or found[3])}</sub>", words)
    words = _ROOT.sub(lambda found: "√" + (found[1] if re.fullmatch(r"\w|\d+", found[1]) else f"({found[1]})"), words)
    return _MINUS.sub("−", words)


def _raised(power: str) -> str:
    return f"<sup>{power.replace('-', '−')}</sup>"


def _lowered(index: str) -> str:
    return _LETTER_OF_INDEX.sub(lambda found: _LETTERS[found[1]], index.replace("-", "−"))
