"""Writes the pages of the reference, one a module of the library, which Sphinx's autodoc fills from the docstrings.

A docstring is written for those who read the source: names between backticks, formulas in ASCII. What reStructuredText
would take for markup there is escaped before autodoc reads it.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from companion import manuscript, pages, project

FOLDER = "reference"
INDEX = f"{FOLDER}/index"
_INTRODUCTION = """\
Every module of the library has a page, made from its docstrings. An annotation like ``Float[Array, "N N"]`` gives the
numbers that an array holds and its shape: letters are sizes, the same letter is the same size, ``*batch`` and ``...``
are any number of axes in front, ``#`` marks an axis that may have length one.
"""
_CODE = re.compile(r"``(.+?)``|(?<!`)`([^`]+)`(?!`)", re.DOTALL)
_ROW = re.compile(r"\S+(?:, \S+)* {2,}\S")
_NAME = re.compile(r"[A-Za-z_][\w.]*(?:\(\))?")


def modules(root: Path) -> Iterator[tuple[str, Path]]:
    """The public modules of the library with their files, by name."""
    folder = root / "src" / project.settings(root).library
    for path in manuscript.listed(folder, "**/*.py"):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if not any(part.startswith("_") for part in parts):
            yield ".".join(parts), path


def stage(root: Path, stage: Path) -> list[dict[str, str]]:
    """Write the pages into a staged book, where its contents name the index; returns their entries of the contents."""
    if INDEX not in pages.pages(root):
        return []
    (stage / FOLDER).mkdir(exist_ok=True)
    index = ["Reference", "=========", "", _INTRODUCTION, ""]
    entries = []
    for name, path in sorted(modules(root)):
        doc = ast.get_docstring(manuscript.code(path)) or ""
        index += [f":py:mod:`{name}`", f"   {_prose(' '.join(doc.partition(chr(10) * 2)[0].split()))}", ""]
        text = f"{name}\n{'=' * len(name)}\n\n.. automodule:: {name}\n   :members:\n"
        (stage / FOLDER / f"{name}.rst").write_text(text, encoding="utf-8")
        entries.append({"file": f"{FOLDER}/{name}", "title": name})
    (stage / f"{INDEX}.rst").write_text("\n".join(index), encoding="utf-8")
    return entries


def source(root: Path, page: str) -> str:
    """The file that a page of the reference was made from, by its place in the repository; "" for other pages."""
    known = dict(modules(root)) if page.startswith(f"{FOLDER}/") else {}
    path = known.get(page.removeprefix(f"{FOLDER}/"))
    return path.relative_to(root).as_posix() if path else ""


def docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape a docstring in place: prose paragraph by paragraph; examples and tables stay as they are."""
    blocks = re.split(r"\n\s*\n", inspect.cleandoc("\n".join(lines)))
    lines[:] = "\n\n".join(map(_block, blocks)).splitlines()


def _block(block: str) -> str:
    examples = re.search(r"^ *>>>", block, re.MULTILINE)
    if examples:
        before = block[: examples.start()].rstrip()
        return (f"{_prose(before)}\n\n" if before else "") + block[examples.start() :]
    if sum(_ROW.match(line) is not None for line in block.splitlines()) > 1:
        return "::\n\n" + "\n".join(f"   {line}" for line in block.splitlines())
    return _prose(block)


def _prose(text: str) -> str:
    """Words with everything escaped that Sphinx would take for markup; code between backticks stays code or a link."""
    done, end = [], 0
    for found in _CODE.finditer(text):
        done.append(_escaped(text[end : found.start()]))
        code = " ".join((found[1] or found[2]).split())
        is_name = _NAME.fullmatch(code)
        done.append(f":py:obj:`{code}`" if is_name else f"``{code}``")
        end = found.end()
        if re.match(r"\w", text[end:]):
            done.append("\\ ")
    return "".join([*done, _escaped(text[end:])])


def _escaped(text: str) -> str:
    def line(words: str) -> str:
        # A bullet at the beginning of a line is meant; the number of an equation, or an initial, is no item of a list.
        start = re.match(r"\s*(?:[-*] )?", words)
        head = start[0] if start else ""
        rest = re.sub(r"([\\*|`])", r"\\\1", words[len(head) :])
        rest = re.sub(r"^(?=\(\w+\) |\w+[.)](?: |$)|[:.=>+-])", r"\\", rest)
        return head + re.sub(r"_(?=\W|$)", r"\\_", rest)

    return "\n".join(line(words) for words in text.split("\n"))


class _Written:
    """An annotation as it was written."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, given: str | None, returns: str | None
) -> tuple[str, str | None] | None:
    """Annotations as they stand in the source, where shapes have their letters; None where Sphinx knows as much."""
    if what not in ("function", "method"):
        return None
    try:
        read = inspect.signature(obj)
    except (TypeError, ValueError):
        return None

    def written(one: Any) -> Any:
        return _Written(one) if isinstance(one, str) else one

    own = [one.replace(annotation=written(one.annotation)) for one in read.parameters.values()]
    own = own[1:] if what == "method" and own and own[0].name in ("self", "cls") else own
    result = None if read.return_annotation is inspect.Signature.empty else str(read.return_annotation)
    return str(inspect.Signature(own)), result


def setup(app: Sphinx) -> None:
    """Register the hooks of autodoc."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", docstring)
    app.connect("autodoc-process-signature", signature)
