"""Turns docstrings into reStructuredText, without importing anything.

A docstring is written for those who read the source: formulas in ASCII, names between backticks, examples. Most of its
signs mean something else to Sphinx (a trailing underscore is a link, bars are a substitution), so that everything
outside of code and examples is escaped. Sections in NumPy's style become lists of fields.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from sphinx.ext.napoleon import Config, NumpyDocstring

Link = Callable[[str], str | None]
"""What a name between backticks leads to, or None."""

_CODE = re.compile(r"``(.+?)``|(?<!`)`([^`]+)`(?!`)", re.DOTALL)
_ROLE = re.compile(r":[a-z:]+:`[^`]+`")
_MATHEMATICS = re.compile(r"[=^~<>|]|[A-Za-z)]_[A-Za-z{]|\bsum[_ ]|[*/+] ")
# Where a formula may end and words begin: "y = x^2: the area", "y = x^2, of every x".
_BREAK = re.compile(r"[:;.](?= )|,(?= (?:[a-z]{3,}|as|in|by|of|to|at) )")
_TABLE_ROW = re.compile(r"\S+(?:, \S+)* {2,}\S")
_SECTION = re.compile(r"^\S.*\n-{3,}$", re.MULTILINE)


def first_line(text: str) -> str:
    """The first paragraph of a docstring, as it was written, on one line."""
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())


def restructured(text: str, link: Link = lambda name: None, *, of_module: bool = False) -> str:
    """A docstring as reStructuredText: formulas and names as code, prose as prose, examples as they are.

    The first paragraph is a ``summary``, but for a module, whose first line is a sentence: words, as all others.
    """
    text = inspect.cleandoc(text)
    if _SECTION.search(text):
        # Napoleon splits the text at its sections and puts fields in their place; it knows nothing of what to escape.
        settings: Any = Config(napoleon_use_rtype=False)
        lines = NumpyDocstring(text, settings).lines()
        # Types stand in the signature.
        text = "\n".join(line for line in lines if not line.startswith(":type "))
    blocks = re.split(r"\n\s*\n", text)
    done = [prose(blocks[0], link) if of_module else summary(blocks[0], link)]
    done += [_block(block, link) for block in blocks[1:]]
    return "\n\n".join(done).rstrip() + "\n"


def plain(text: str) -> str:
    """Words of a title without the signs of its markup."""
    return re.sub(r"[`<>\\*]", "", text).strip()


def summary(text: str, link: Link = lambda name: None) -> str:
    """The first paragraph: its formula as code, up to where only words follow."""
    if text.lstrip().startswith((":", ">>>")):
        return _block(text, link)
    text = " ".join(text.split())
    formula, words = _split(text)
    if not formula:
        return prose(words, link)
    return f"``{formula.replace('`', '').strip()}``{prose(words, link)}"


def _split(text: str) -> tuple[str, str]:
    """The formula that a paragraph begins with, and the words after it; either may be empty."""
    bare = _CODE.sub("", text)
    if not _MATHEMATICS.search(bare):
        return "", text
    for stop in _BREAK.finditer(text):
        head, tail = text[: stop.start()], text[stop.start() :]
        if head.count("`") % 2 or head.count("(") != head.count(")"):
            continue
        if not _MATHEMATICS.search(_CODE.sub("", tail)):
            return (head, tail) if _MATHEMATICS.search(_CODE.sub("", head)) else ("", text)
    return text.rstrip("."), "." if text.endswith(".") else ""


def _block(block: str, link: Link) -> str:
    """One paragraph, example, table or list of fields."""
    lines = block.strip("\n").splitlines()
    bare = inspect.cleandoc("\n".join(lines)).splitlines()
    if not bare:
        return ""
    if bare[0].startswith(">>>"):
        return block.strip("\n")
    example = next((number for number, line in enumerate(bare) if line.startswith(">>>")), 0)
    if example:
        return "\n\n".join(_block("\n".join(part), link) for part in (bare[:example], bare[example:]))
    if sum(_TABLE_ROW.match(line) is not None for line in bare) >= 2:
        return "::\n\n" + "\n".join(f"   {line}" for line in bare)
    return prose("\n".join(lines), link)


def prose(text: str, link: Link = lambda name: None) -> str:
    """Words with everything escaped that Sphinx would take for markup; code in backticks stays code, or is a link."""
    done, end = [], 0
    for match in re.finditer(f"{_ROLE.pattern}|{_CODE.pattern}", text, re.DOTALL):
        done.append(_escaped(text[end : match.start()]))
        done.append(_code(match, link))
        end = match.end()
        if end < len(text) and re.match(r"\w", text[end]):
            done.append("\\ ")
    return "".join([*done, _escaped(text[end:])])


def _code(match: re.Match[str], link: Link) -> str:
    code = match[1] or match[2]
    if code is None:
        return match[0]
    code = " ".join(code.split())
    if re.fullmatch(r"[A-Za-z_][\w.]*(?:\(\))?", code) and (target := link(code.removesuffix("()"))):
        return f":py:obj:`{code} <{target}>`"
    return f"``{code}``"


def _escaped(text: str) -> str:
    def line(words: str) -> str:
        # A bullet or a field at the beginning of a line is meant.
        head = re.match(r"\s*(?:[-*] |:[a-z]+(?: [^:`]+)?: )?", words)
        start = head[0] if head else ""
        rest = re.sub(r"([\\*|`])", r"\\\1", words[len(start) :])
        # The number of an equation, or an initial, is no item of a list.
        rest = re.sub(r"^(\s*)(?=\(\w+\) |(?:[A-Za-z]|0|\d\d+)[.)](?: |$))", r"\1\\", rest)
        return start + re.sub(r"_(?=\W|$)", r"\\_", rest)

    return "\n".join(line(words) for words in text.split("\n"))
