"""Shows the map of equations as a list to filter, and the functions with their tests; an extension of Sphinx.

What the map holds is read from the repository when the page is made (see ``companion.declaring.equations``); the
verdicts are those of ``_build/claims.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from docutils import nodes

from companion import project
from companion.declaring import equations
from companion.site import directives, reference
from companion.site.markup import count, fill


class EquationMap(directives.Directive):
    """``{equation-map}``: every equation, the functions that compute it, their tests, and the claims about it."""

    def run(self) -> list[nodes.Node]:
        """The two tables."""
        return self.waits() or [self.raw(markup(equations.Map(self.root), self.read("claims.json"), self.to_root()))]


def markup(found: equations.Map, entries: Sequence[Mapping[str, Any]], to_root: str) -> str:
    """The map as HTML, with ``entries`` as ``claims.json`` holds them."""
    works = project.references(found.root)
    package = found.packages[0]
    of_sources = [one for one in found.rows if one.source]
    own = [one for one in found.rows if not one.source]
    called = {test for one in found.functions.values() for test in one.tests}
    named = {id for one in found.rows for id in one.claims}

    def module_of(name: str) -> str:
        parts = name.split(".")
        above = (".".join(parts[:length]) for length in range(len(parts) - 1, 0, -1))
        return next((module for module in above if module in found.library.modules), "")

    return fill(
        "equations.map",
        totals=f"{count(len(of_sources), 'equation')} of the sources and {len(own)} of this book, "
        f"{count(len(found.functions), 'function')} that compute them or that claims name, "
        f"{count(len(called), 'test')} that call these, and {count(len(named), 'claim')} about an equation.",
        found=found,
        rows=[*of_sources, *own],
        by_id={entry["id"]: entry for entry in entries},
        to_root=to_root,
        tests_of=lambda one: len({test for name in one.functions for test in found.functions[name].tests}),
        cited=lambda key: project.names_and_year(works[key]) if key in works else "this book",
        short_name=lambda name: name.removeprefix(f"{package}."),
        module_of=module_of,
        documented=reference.wanted(found.root),
        code=reference.code,
    )
