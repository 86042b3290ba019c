"""Says the numbers of chapters, figures and equations where directives and records name them; an extension of Sphinx.

Sphinx counts when all pages are read, by the chapters of ``_toc.yml`` that are ``numbered``; a page beneath another
continues its numbers. What a directive writes before that holds a ``place``, which is filled when the page is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders import Builder
from sphinx.domains.std import StandardDomain
from sphinx.environment import BuildEnvironment

_PLACE = re.compile("\ue000(\\w+) ([^\ue001]*)\ue001")


def place(kind: str, name: str) -> str:
    """Where the number of a ``figure`` or an ``equation`` is put, or that of a ``chapter``, by its page, as "6. "."""
    return f"\ue000{kind} {name}\ue001"


def filled(text: str, numbers: Mapping[str, Mapping[str, str]]) -> str:
    """The text with a number at every place; figures and equations without one are called by their names."""
    return _PLACE.sub(lambda found: numbers[found[1]].get(found[2], "" if found[1] == "chapter" else found[2]), text)


def cited(record: Mapping[str, Any], number: str) -> dict[str, Any]:
    """The record of a figure with its number, which its citations say before its id."""
    old, new = f"Figure {record['id']}:", f"Figure {number} ({record['id']}):"
    csl = record["csl"] | {"title": record["csl"]["title"].replace(old, new, 1)}
    return {**record, "number": number, "bibtex": record["bibtex"].replace(old, new, 1), "csl": csl}


def counted(env: BuildEnvironment) -> dict[str, dict[str, str]]:
    """The numbers of figures and equations by label, and those of chapters by page, as they stand before titles."""
    standard, equations = env.get_domain("std"), env.get_domain("math")
    chapters = {
        page: f"{number}. " for page, numbers in env.toc_secnumbers.items() if (number := _number(numbers.get("")))
    }
    figures = {
        label: _number(env.toc_fignumbers.get(page, {}).get("figure", {}).get(anchor))
        for label, (page, anchor, *_) in standard.anonlabels.items()  # type: ignore[attr-defined]
    }
    displayed = {
        label: _number(env.toc_fignumbers.get(page, {}).get("displaymath", {}).get(nodes.make_id(f"equation-{label}")))
        or str(alone)
        for label, (page, alone) in equations.equations.items()  # type: ignore[attr-defined]
    }
    found = {"chapter": chapters, "figure": figures, "equation": displayed}
    return {kind: {name: number for name, number in some.items() if number} for kind, some in found.items()}


def _number(parts: tuple[int, ...] | None) -> str:
    return ".".join(map(str, parts or ()))


class Standard(StandardDomain):
    """Sphinx's own domain, which reads a page anew for every reference to one of its figures; this one reads none."""

    def resolve_xref(
        self,
        env: BuildEnvironment,
        fromdocname: str,
        builder: Builder,
        typ: str,
        target: str,
        node: addnodes.pending_xref,
        contnode: nodes.Element,
    ) -> nodes.Element | None:
        """A reference to a figure by its number; all other references as Sphinx resolves them."""
        page, anchor = self.anonlabels.get(target, ("", ""))
        number = _number(env.toc_fignumbers.get(page, {}).get("figure", {}).get(anchor))
        title = contnode.astext() if node["refexplicit"] else env.config.numfig_format["figure"]
        if typ != "numref" or not number or "{" in title:
            return super().resolve_xref(env, fromdocname, builder, typ, target, node, contnode)
        kind = {"nodeclass": addnodes.number_reference, "title": title}
        return self.build_reference_node(fromdocname, builder, page, anchor, title % number, "numref", **kind)


def fill(app: Sphinx, page: nodes.document, name: str) -> None:
    """Fill the places of a page when it is written."""
    for node in page.findall(nodes.raw):
        if _PLACE.search(text := node.astext()):
            node.children = [nodes.Text(filled(text, counted(app.env)))]
