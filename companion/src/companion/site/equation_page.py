"""Shows the map of equations as a list to filter, and the functions with their tests; an extension of Sphinx.

What the map holds is read from the repository when the page is made (see ``companion.declaring.equations``); the
verdicts are those of ``_build/claims.json``.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from companion import claims, plain, project
from companion.declaring import equations
from companion.site import directives, numbering, reference

__all__ = ["EquationMap", "markup", "setup"]


class EquationMap(directives.Directive):
    """``{equation-map}``: every equation, the functions that compute it, their tests, and the claims about it."""

    def run(self) -> list[nodes.Node]:
        """The two tables."""
        return [self.raw(markup(equations.Map(self.root), self.read("claims.json"), self.to_root()))]


def markup(found: equations.Map, entries: Sequence[Mapping[str, Any]], to_root: str) -> str:
    """The map as HTML, with ``entries`` as ``claims.json`` holds them."""
    works = project.references(found.root)
    by_id = {entry["id"]: entry for entry in entries}
    documented = reference.wanted(found.root)

    def function(name: str) -> str:
        return f'<a href="#{_anchor(name)}"><code>{html.escape(_short(name, found.packages[0]))}</code></a>'

    def claim(id: str) -> str:
        if id not in by_id:
            return f"<code>{html.escape(id)}</code>"
        verdict, label, mark = directives.verdict_of(by_id[id])
        return (
            f'<a href="{to_root}book/claims.html#ledger-{claims.anchor_of(id)}">{html.escape(id)}</a> '
            f'<span class="book-verdict book-verdict-{verdict}"><span aria-hidden="true">{mark}</span> {label}</span>'
        )

    def label(name: str) -> str:
        page = found.labels.get(name, "")
        target = f"{to_root}{page}.html#equation-{name.replace(':', '-')}"
        # With the class of a link to an equation, which shows it while the mouse or the keyboard is on it.
        number = numbering.place("equation", name)
        return f'<a class="reference internal" href="{target}">({number})</a> {html.escape(name)}'

    def place(given: str) -> str:
        page, _, anchor = given.partition("#")
        folder = "" if page.startswith("book/") else "notebooks/"
        target = f"{to_root}{folder}{page}.html" + (f"#{anchor}" if anchor else "")
        return f'<a href="{target}">{html.escape(given)}</a>'

    def row(one: equations.Row) -> str:
        tests = {test for name in one.functions for test in found.functions[name].tests}
        source = project.names_and_year(works[one.source]) if one.source in works else "this book"
        title = label(one.label) if one.label else plain.typeset(one.words)
        section = f", section {html.escape(one.section)}" if one.section else ""
        where = f"{html.escape(source)}{section}" if one.source else html.escape(one.page)
        shown = "".join(f"<p>Here: {label(name)}</p>" for name in one.shown)
        shown += "".join(f"<p>Here: {place(words)}</p>" for words in one.places)
        reasons = "".join(f'<p class="book-because">{plain.typeset(reason)}</p>' for reason in one.reasons)
        kind = "computed" if one.functions else "claimed" if one.claims else "in words"
        return (
            f'<tr id="{one.anchor}" data-text="{one.source or "this book"}" data-kind="{kind}">'
            f"<td>{title}<p>{where}</p>{shown}{reasons}</td><td>{_listed(map(function, one.functions))}</td>"
            f'<td data-value="{len(tests)}">{len(tests) or "–"}</td><td>{_listed(map(claim, one.claims))}</td></tr>'
        )

    def function_row(one: equations.Function) -> str:
        name = f"<code>{html.escape(_short(one.name, found.packages[0]))}</code>"
        module = next((m for m in _parents(one.name) if m in found.library.modules), "")
        if documented and module:
            name = f'<a href="{to_root}reference/{module}.html#{html.escape(one.name)}">{name}</a>'
        # The file as it is in this version, whatever becomes of the public address.
        place = f'<a href="{to_root}{html.escape(reference.code(one.file))}">{html.escape(one.file)}:{one.line}</a>'
        tests = "".join(f"<li>{html.escape(test.file)}:{test.line} {_words(test.name)}</li>" for test in one.tests)
        files = len({test.file for test in one.tests})
        summary = f"{_count(len(one.tests), 'test')} in {_count(files, 'file')}"
        group = _short(module, found.packages[0]).partition(".")[0]
        return (
            f'<tr id="{_anchor(one.name)}" data-package="{group}"><td>{name}<p>{place}</p></td>'
            f'<td data-value="{len(one.tests)}"><details><summary>{summary}</summary><ul>{tests}</ul></details></td>'
            f"<td>{_listed(map(claim, one.claims))}</td></tr>"
        )

    of_sources = [one for one in found.rows if one.source]
    own = [one for one in found.rows if not one.source]
    called = {test for one in found.functions.values() for test in one.tests}
    named = {id for one in found.rows for id in one.claims}
    totals = (
        f'<p class="book-totals">{_count(len(of_sources), "equation")} of the sources and {len(own)} of this book, '
        f"{_count(len(found.functions), 'function')} that compute them or that claims name, "
        f"{_count(len(called), 'test')} that call these, and {_count(len(named), 'claim')} about an equation.</p>"
    )
    return (
        totals
        + _table("book-equations", ("Equation", "Functions", "Tests", "Claims"), map(row, [*of_sources, *own]))
        + '<h2 id="functions-of-the-map">The functions</h2>'
        + _table("book-functions", ("Function", "Tests", "Claims"), map(function_row, found.functions.values()), "f-")
    )


def _table(css: str, headings: Sequence[str], rows: Any, prefix: str = "") -> str:
    """A table to sort and to filter; ``prefix`` tells the names of its filters in the address from those of another."""
    head = "".join(f'<th scope="col" aria-sort="none">{heading}</th>' for heading in headings)
    return (
        f'<div class="book-table"><table class="{css} book-sortable book-filterable table" data-prefix="{prefix}">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _listed(parts: Any) -> str:
    inside = "".join(f"<li>{part}</li>" for part in parts)
    return f"<ul>{inside}</ul>" if inside else "–"


def _anchor(name: str) -> str:
    return "function-" + name.replace(".", "-").replace("_", "-").lower()


def _short(name: str, package: str) -> str:
    return name.removeprefix(f"{package}.")


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(len(parts) - 1, 0, -1)]


def _words(test: str) -> str:
    return html.escape(test.rpartition(".")[2].removeprefix("test_").replace("_", " "))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("equation-map", EquationMap)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
