"""Base classes of the directives and roles of the book: they read records of the build and fill templates.

A template is laid out for reading: a line break between two tags is none of the page, any other is a space. A file of
``templates`` has macros for one subject, which take the facts that ``fill`` is given.
"""

from __future__ import annotations

import ast
import copy
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup
from nbformat import NotebookNode
from sphinx.util.docutils import SphinxDirective, SphinxRole

from companion import claims, pages, plain, project
from companion.run import key

Entry = Mapping[str, Any]
"""A claim as ``claims.json`` has it."""


class OnPage:
    """What a directive or a role reads of ``_build``, and the HTML that it returns."""

    config: Any
    env: Any

    @property
    def root(self) -> Path:
        """The repository of the book."""
        return Path(self.config.companion_root)

    def read(self, name: str) -> Any:
        """A record of the build."""
        return built(self.root, name)

    def claims(self) -> list[Entry]:
        """All entries of the ledger."""
        return list(self.read("claims.json"))

    def to_root(self) -> str:
        """Relative path from this page to the root of the site."""
        return "../" * self.env.docname.count("/")

    def raw(self, markup: str) -> nodes.raw:
        """HTML as it is."""
        return nodes.raw("", str(markup), format="html")

    def filled(self, place: str, *parts: Any, **facts: Any) -> nodes.raw:
        """A template, which knows the way to the root of the site."""
        return self.raw(fill(place, *parts, to_root=self.to_root(), **facts))


class Role(OnPage, SphinxRole):
    """A role that returns HTML in a line."""

    def missed(self, words: str) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """What was asked for, as it stands in the text; the words go to the log, which fails the build."""
        self.inliner.reporter.error(f"{self.name}: {words}", line=self.lineno)
        return [nodes.literal("", self.rawtext)], []


class Directive(OnPage, SphinxDirective):
    """A directive that returns HTML."""

    has_content = False

    def in_line(self, text: str) -> list[nodes.Node]:
        """Words of one paragraph, with their roles and formulas."""
        return list(self.state.inline_text(text, self.lineno)[0])


def built(root: Path, name: str) -> Any:
    """A record of the last build, as ``claims.json``; what is returned is kept, and must not be changed."""
    return _decoded((root / "_build" / name).read_text(encoding="utf-8"))


# Hundreds of directives and roles ask for the same few.
_decoded = lru_cache(maxsize=256)(json.loads)


def page_of(entry: Entry) -> str:
    """The address of a claim from the root of the site: where it is measured, or its line in the ledger."""
    anchor = claims.anchor_of(entry["id"])
    return f"notebooks/{entry['page']}.html#{anchor}" if entry["measured"] is not None else line_of(entry["id"])


def line_of(id: str) -> str:
    """The address of a claim's line in the ledger of its chapter, from the root of the site."""
    return f"book/ledger/{id.partition('.')[0]}.html#ledger-{claims.anchor_of(id)}"


def source_of(works: Mapping[str, Mapping[str, str]], key: str | None) -> str:
    """A work as "Author (2000)", with its title where that does not tell two works apart; "this book" for None."""
    if not key or key not in works:
        return key or "this book"
    mine = project.names_and_year(works[key])
    alike = [work for work in works.values() if work.get("keywords") == works[key].get("keywords")]
    alone = sum(project.names_and_year(work) == mine for work in alike) == 1
    return mine if alone else f"{mine}, “{works[key]['title'].partition(':')[0]}”"


def address(work: Mapping[str, str]) -> str | None:
    """Where a work of ``references.bib`` is to be read, if it says so."""
    if "url" in work:
        return work["url"]
    if "doi" in work:
        return f"https://doi.org/{work['doi']}"
    return f"https://arxiv.org/abs/{work['eprint']}" if "eprint" in work else None


def with_outputs(
    chapter: pages.Chapter, results: Path
) -> tuple[NotebookNode, list[tuple[NotebookNode, list[tuple[str, str, NotebookNode]]]]]:
    """A page as it is now, and its cells with their numbers and the outputs of the run in the folder ``results``.

    Every output has the kind of what it shows, "figure", "claim" or "", and its id. Raises ``ValueError`` if the run
    executed other code than the page has.
    """
    executed = nbformat.read(results / f"{pages.slug(chapter.name)}.ipynb", as_version=4)
    page, values = copy.deepcopy(chapter.notebook), expressions(executed)
    ran = [cell for cell in executed.cells if cell.cell_type == "code"]
    if [cell.source for cell in ran] != chapter.code:
        raise ValueError(f"chapter {chapter.name}: its run executed other code than the chapter has")
    found, place = [], 0
    for cell in page.cells:
        outputs: list[tuple[str, str, NotebookNode]] = []
        if cell.cell_type == "markdown":
            cell.source = key.evaluated(cell.source, values[place])
        else:
            cell.outputs, cell.execution_count = [], ran[place].execution_count
            cell.metadata.pop("mystnb", None)
            for output in ran[place].outputs:
                kind, id = next(iter(output.get("metadata", {}).get("companion", {"": ""}).items()))
                outputs.append((kind, id, output))
            place += 1
        found.append((cell, outputs))
    return page, found


def expressions(executed: NotebookNode) -> list[dict[str, str]]:
    """The values of ``{eval}`` by the number of code cells above them, from what the kernel kept of a page."""
    found: list[dict[str, str]] = [{}]
    for cell in executed.cells:
        if cell.cell_type == "code":
            # A caption is read when its cell has run.
            found.append({})
        for one in cell.metadata.get("user_expressions", []):
            text = one["result"]["data"]["text/plain"]
            found[-1][one["expression"]] = str(ast.literal_eval(text)) if text[:1] in ("'", '"') else text
    return found


class _Layout(Extension):
    """Takes the layout of a template away before it is read."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return re.sub(r"\n\s*", " ", re.sub(r"(?<=[>}])\n\s*(?=[<{])", "", source.strip()))


def fill(place: str, *parts: Any, **facts: Any) -> Markup:
    """The HTML of the macro NAME of FILE.html, for a ``place`` FILE.NAME; a fact that is not given is an error."""
    file, _, name = place.partition(".")
    module = _environment().get_template(f"{file}.html").make_module(facts)
    made: Markup = getattr(module, name)(*parts)
    return made


@cache
def _environment() -> Environment:
    folder = Path(__file__).with_name("templates")
    made = Environment(
        loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined, extensions=[_Layout]
    )
    made.filters |= {"anchor": claims.anchor_of, "number": claims.format_value, "typeset": typeset}
    made.globals |= {"kinds_of_claims": claims.KINDS, "verdicts": claims.WORDS}
    made.globals |= {"expectation_of": claims.expectation_of, "with_error": claims.with_error, "said_by": said_by}
    made.globals |= {"line_of": line_of, "page_of": page_of, "verdict_of": verdict_of, "found_of": found_of}
    return made


def typeset(words: str | None) -> Markup:
    """The words of a claim with their formulas set, as HTML; nothing for None."""
    return Markup(plain.typeset(words or ""))


def verdict_of(entry: Entry) -> tuple[str, str, str]:
    """Kind, words and mark of a claim's verdict; a verdict that the measurement does not confirm is one of its own."""
    verdict = entry["verdict"] if entry["holds"] is not False else claims.FAILED
    label = "not confirmed" if verdict == claims.FAILED else verdict.replace("-", " ")
    return verdict, label, claims.WORDS[verdict].mark


def said_by(entry: Entry) -> str:
    """The words of the source between quotation marks, their formulas as letters, or nothing."""
    return f"“{plain.plain(entry['quote'])}”" if entry["quote"] else ""


def found_of(found: Mapping[str, Any]) -> str:
    """What was found in place of what a refuted claim says, in words."""
    bound = f" within {found['bound']:.2g}" if found.get("bound") else ""
    return f"{claims.format_value(found['value'])}{bound}"


def enumerated(parts: Sequence[str]) -> str:
    """Parts as a sentence names them.

    >>> enumerated(["one", "two", "three"]), enumerated(["one"])
    ('one, two and three', 'one')
    """
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
