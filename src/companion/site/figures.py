"""Shows published figures, their gallery, the cards of the chapters, live models, and what run a page shows.

All read the files in ``_build``, and what is drawn is drawn there already; ``live`` and ``from-library`` show what a
function of the book's packages returns.
"""

from __future__ import annotations

import hashlib
import importlib
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes

from companion import claims, pages, plain, project
from companion.claims.ledger import by_id
from companion.site.onpage import Directive, Role, source_of

LIVE = "chapters.live"
"""The package of the live models."""
_DOWNLOADS = ("png", "svg", "pdf", "csv", "npz")
_DOTS = 2
"""Dots of a picture that are one of a page, along a side."""


def drawn(record: dict[str, Any], compared: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a figure with its size on a page, and how it differs from the published one, if it is compared."""
    size = [side // _DOTS for side in record["size"]]
    return {**record, "compared": compared.get(record["id"]), "size": size}


def citation(who: project.Identity, record: dict[str, Any]) -> str:
    """The BibTeX entry of a figure, whose title is the first sentence of its caption."""
    id, first = record["id"], plain.plain(record["caption"]).split(". ")[0].split(": ")[0].rstrip(".:")
    return who.bibtex(f"{who.library}:{id}", f"Figure {id}: {first}", who.chapter_url(record["page"], id))


class PublishedFigure(Directive):
    """``{published-figure} ID``: picture in two themes, numbered caption, anchor, and the fold to cite it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        id = self.arguments[0]
        if (found := next((record for record in self.read("figures.json") if record["id"] == id), None)) is None:
            raise self.error(f"published-figure: the runs of this build published no figure {id!r}")
        record = drawn(found, claims.figures(self.root))
        figure = nodes.figure(classes=["book-figure"])
        figure += self.filled("figures.picture", record)
        caption = nodes.caption("", "", *self.in_line(record["caption"]))
        caption.source, caption.line = self.get_source_info()
        figure += caption
        who = project.identity(self.root)
        fold = self.filled(
            "figures.fold",
            record=record,
            names=[f"{id}.{kind}" for kind in _DOWNLOADS if f"{id}.{kind}" in record["files"]],
            address=who.chapter_url(record["page"], id),
            bibtex=citation(who, record),
            ledger=by_id(self.claims()),
        )
        figure += nodes.legend("", fold)
        figure["names"].append(id)
        self.state.document.note_explicit_target(figure, figure)
        return [figure]


class FigureGallery(Directive):
    """``{figure-gallery}``: every published figure of the book, with a link to its place, beside its source's."""

    def run(self) -> list[nodes.Node]:
        listed = [page["page"] for page in self.read("status.json")["chapters"]]
        texts = {page: (self.root / "notebooks" / f"{page}.md").read_text(encoding="utf-8") for page in listed}

        def order(record: dict[str, Any]) -> tuple[int, int]:
            return listed.index(record["page"]), texts[record["page"]].find(record["id"])

        compared = claims.figures(self.root)
        records = [drawn(record, compared) for record in sorted(self.read("figures.json"), key=order)]
        return [self.filled("figures.gallery", records=records, ledger=by_id(self.claims()))]


class ChapterCards(Directive):
    """``{chapter-cards}``: a sentence for every chapter in reading order, and its drawing in ``book/_static/cards``."""

    def run(self) -> list[nodes.Node]:
        works, entries, cards = project.references(self.root), self.claims(), []
        listed = self.read("status.json")["chapters"]
        for number, page in enumerate((page for page in listed if page["page"] == page["chapter"]), start=1):
            said = claims.among([entry for entry in entries if entry["chapter"] == page["chapter"]])["said"]
            drawing = self.root / "book" / "_static" / "cards" / f"{page['chapter']}.svg"
            cards.append(
                {
                    "number": number,
                    "page": page,
                    "drawing": drawing.read_text(encoding="utf-8") if drawing.is_file() else "",
                    "source": source_of(works, page["source"]),
                    "judged": sum(entry["holds"] is not None for entry in said),
                }
            )
        return [self.filled("figures.chapters", cards=cards)]


class FromLibrary(Directive):
    """``{from-library} MODULE.FUNCTION``: the HTML that a function returns at the arguments of the content, in YAML."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].rpartition(".")
        try:
            arguments = yaml.safe_load("\n".join(self.content)) or {}
            return [self.raw(str(getattr(importlib.import_module(module), name)(**arguments)))]
        except (yaml.YAMLError, ImportError, AttributeError, TypeError, ValueError) as error:
            raise self.error(f"from-library: {self.arguments[0]}: {error}") from error


class _Options(dict[str, Callable[[str | None], Any]]):
    """Options of any name, whose values are YAML."""

    def __missing__(self, name: str) -> Callable[[str | None], Any]:
        return lambda text: None if text is None else yaml.safe_load(text)

    def __bool__(self) -> bool:
        return True


class Live(Directive):
    """``{live} NAME``: the live model ``chapters.live.NAME`` with its options, and the content as its caption.

    Where scripts do not run stands the picture that the model's function ``still`` draws for the same options.
    """

    required_arguments = 1
    has_content = True
    option_spec = _Options()

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        options = {option.replace("-", "_"): value for option, value in self.options.items()}
        try:
            module = importlib.import_module(f"{LIVE}.{name.replace('-', '_')}")
            markup, still = module.markup(**options), self._still(name, module, options)
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            raise self.error(f"live: {name}: {error}") from error
        caption = " ".join(self.content)
        script = project.identity(self.root).source_url(f"book/_static/live/{name}.js")
        words = nodes.paragraph("", "", *self.in_line(caption), classes=["book-live-caption"])
        words += self.filled("figures.script", script)
        start = self.filled("figures.live", name=name, markup=markup, still=still, alt=plain.plain(caption))
        return [start, words, self.raw("</figcaption></figure>")]

    def _still(self, name: str, module: Any, options: dict[str, Any]) -> str:
        """Draw the picture into the site; returns its address from the root of the site."""
        import matplotlib.pyplot as plt

        drawing = io.StringIO()
        with plt.rc_context({"svg.hashsalt": name}):
            figure = module.still(**options)
            figure.savefig(drawing, format="svg", metadata={"Date": None})
            plt.close(figure)
        text = drawing.getvalue()
        address = f"_static/live/{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.svg"
        target = Path(self.env.app.outdir) / address
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return address


class PageFacts(Directive):
    """``{page-facts} NAME``: how long a page is, what it needs, and where the other page of its chapter is."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        page = pages.load(self.root, self.arguments[0])
        audit = f"{pages.AUDITS}/{page.chapter}"
        return [self.filled("page.facts", page, audit if audit in pages.names(self.root) else "")]


class Provenance(Directive):
    """``{provenance} NAME``: the foot of a page, a closed fold that says what run it shows and how it is cited."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        page = next(page for page in self.read("status.json")["chapters"] if page["page"] == self.arguments[0])
        if page["state"] != "finished":
            return []
        who = project.identity(self.root)
        name = f"{who.library}:{pages.slug(page['page'])}"
        entry = who.bibtex(name, page["title"], who.chapter_url(page["page"]))
        return [self.filled("page.provenance", page=page, entry=entry)]


class ChapterStatus(Directive):
    """``{chapter-status}``: when, from what and how each chapter was run."""

    def run(self) -> list[nodes.Node]:
        return [self.filled("page.table", status=self.read("status.json"))]


class SiteUrl(Role):
    """``{siteurl}`NAME` ``: a link to a file at the root of the site, which is there only after the pages are made."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        return [self.filled("page.file", self.text)], []
