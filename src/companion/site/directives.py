"""Shows published figures, the gallery, the claims ledger and the status on pages; an extension of Sphinx.

Every directive but one reads the plain files in ``_build`` (figure.json, claims.json, status.json) and computes
nothing; ``from-library`` shows what a function of the book's library returns.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from markupsafe import escape
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective, SphinxRole

from companion import claims, project
from companion.declaring import compared, items, texts
from companion.site import catalogue, numbering, reference
from companion.site.markup import enumerated, fill


class OnPage:
    """What a directive or a role of a page reads in ``_build``, and the HTML that it returns."""

    config: Any
    env: Any

    @property
    def root(self) -> Path:
        """The repository of the book."""
        return Path(self.config.companion_root)

    def read(self, name: str) -> Any:
        """A file of ``_build``."""
        return catalogue.built(self.root, name)

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

    def waits(self) -> list[nodes.Node]:
        """What stands in a first site in place of a table that takes long; nothing in the whole site."""
        return [nodes.paragraph("", said)] if (said := self.config.companion_waits) else []


class PublishedFigure(Directive):
    """``{published-figure} ID``: picture in two themes, numbered caption, anchor, and the fold to cite it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        id = self.arguments[0]
        record = self.read(f"figures/{id}/figure.json")
        figure = nodes.figure(classes=["book-figure"])
        labels = json.dumps(record.get("frames", {}).get("labels", []), ensure_ascii=False)
        in_archive = in_archive_only(id, record["files"])
        figure += self.filled("figures.shown", record=record, labels=labels)
        caption = nodes.caption("", "", *self.state.inline_text(record["caption"], self.lineno)[0])
        caption.source, caption.line = self.get_source_info()
        figure += caption
        who = project.identity(self.root)
        fold = self.filled(
            "figures.fold",
            record=record,
            names=[*sorted(set(record["files"]) - in_archive), f"{id}.csl.json", "figure.json"],
            also=enumerated(sorted(name.removeprefix(f"{id}.").upper() for name in in_archive)),
            address=who.chapter_url(record["page"], id),
            source=_versioned(record, who),
            bibtex=numbering.cited(record, numbering.place("figure", id))["bibtex"],
            comparison=compared.read(self.root).get(id),
            by_id=catalogue.by_id(self.read("claims.json")),
        )
        figure += nodes.legend("", fold)
        figure["names"].append(id)
        self.state.document.note_explicit_target(figure, figure)
        return [figure]


def in_archive_only(id: str, files: Iterable[str]) -> set[str]:
    """Those of a figure's files that no page shows: they are in its archive, with all the others.

    Of the numbers a table stands alone too, for whoever reads it by its address; arrays are packed once.
    """
    names = set(files)
    shown_as_drawing = f"{id}-dark.svg" in names
    return names & {f"{id}.npz", f"{id}.pdf", f"{id}.png" if shown_as_drawing else f"{id}.svg"}


def _versioned(record: dict[str, Any], who: project.Identity) -> str:
    """The address of the chapter's text as it was when it made the figure, where that is a commit."""
    if not re.fullmatch(r"[0-9a-f]{40}", record["commit"]):
        return ""
    return who.source_url(f"notebooks/{record['page']}.md", record["commit"])


class FigureGallery(Directive):
    """``{figure-gallery}``: every published figure of the book, with a link to its place, beside its source's."""

    def run(self) -> list[nodes.Node]:
        pages = [page["page"] for page in self.read("status.json")["chapters"]]

        def order(record: dict[str, Any]) -> tuple[int, int]:
            text = (self.root / "notebooks" / f"{record['page']}.md").read_text(encoding="utf-8")
            return pages.index(record["page"]), text.find(f'"{record["id"]}"')

        records = sorted(self.read("figures.json"), key=order)
        comparisons = compared.read(self.root)
        by_id = catalogue.by_id(self.read("claims.json"))
        return [self.filled("figures.gallery", records=records, comparisons=comparisons, by_id=by_id)]


class ChapterCards(Directive):
    """``{chapter-cards}``: a sentence and a picture for every chapter, in reading order."""

    def run(self) -> list[nodes.Node]:
        figures = {record["id"]: record for record in self.read("figures.json")}
        works, entries, cards = project.references(self.root), self.read("claims.json"), []
        pages = self.read("status.json")["chapters"]
        for page in pages:
            if page["page"] != page["chapter"]:
                continue
            said = claims.among([entry for entry in entries if entry["chapter"] == page["chapter"]])["said"]
            verdicts = [entry["verdict"] for entry in said]
            cards.append(
                {
                    "page": page,
                    "record": figures.get(page["thumbnail"]),
                    "source": _citation(works, page["source"]),
                    "held": sum(bool(entry["holds"]) for entry in said),
                    "judged": sum(entry["holds"] is not None for entry in said),
                    "verdicts": {verdict: verdicts.count(verdict) for verdict in claims.VERDICTS},
                    "ran": all(one["state"] == "finished" for one in pages if one["chapter"] == page["chapter"]),
                }
            )
        return [self.filled("figures.chapters", cards=cards)]


class Result(Directive):
    """``{result} FIGURE``: a figure's picture, which leads to its place, beside the content, which says what it shows.

    Where the figure's page has not run there is neither, so that a book of which one chapter was made stands.
    """

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        id = self.arguments[0]
        chapter = project.chapter_of(id, self.root)
        states = {page["state"] for page in self.read("status.json")["chapters"] if page["chapter"] == chapter}
        record = next((record for record in self.read("figures.json") if record["id"] == id), None)
        if record is None and states <= {"finished"}:
            raise self.error(f"result: expected the id of a published figure, got {id!r}")
        if record is None:
            return []
        said = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, said)
        return [self.filled("figures.result", record=record), *said.children, self.raw("</div></div>")]


class FromLibrary(Directive):
    """`{from-library} MODULE.FUNCTION`: the HTML that a function of the book's packages returns, at its arguments.

    The content gives them by name, as YAML. Unlike the other directives this one computes, whatever the function does.
    """

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].rpartition(".")
        try:
            arguments = yaml.safe_load("\n".join(self.content)) or {}
        except yaml.YAMLError as error:
            raise self.error(f"from-library: expected its arguments in YAML: {error}") from error
        if not module or not isinstance(arguments, dict):
            raise self.error("from-library: expected MODULE.FUNCTION, and its arguments by name in the content")
        packages = project.packages(self.root)
        # A name without a package is one of the library.
        full = module if module.partition(".")[0] in packages else f"{packages[0]}.{module}"
        try:
            function = getattr(importlib.import_module(full), name)
        except (ImportError, AttributeError) as error:
            raise self.error(f"from-library: {full} has no {name}: {error}") from error
        return [self.raw(str(function(**arguments)))]


class ClaimsLedger(Directive):
    """``{claims-ledger}``: totals by kind and verdict, the table of all claims, sortable, and what was retired."""

    HEADINGS = ("Claim", "Kind", "Source", "Published", "Ours", "Rival", "Gap", "Bound", "Verdict")

    def run(self) -> list[nodes.Node]:
        works, entries = project.references(self.root), self.read("claims.json")
        table = self.filled(
            "ledger.table",
            headings=self.HEADINGS,
            entries=entries,
            counted=claims.among(entries),
            retired=self.read("status.json")["retired"],
            cited=lambda key: _citation(works, key),
            texts=texts.read(self.root),
        )
        return [table]


class Corrections(Directive):
    """``{corrections} VERDICT``: the claims of that verdict by source, a card each that can be understood alone."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        verdict = self.arguments[0]
        if verdict not in claims.VERDICTS:
            raise self.error(f"corrections: expected one of {', '.join(claims.VERDICTS)}, got {verdict!r}")
        works = project.references(self.root)
        parts: list[nodes.Node] = []
        said = [
            entry for entry in self.read("claims.json") if entry["verdict"] == verdict and entry["kind"] != claims.OWN
        ]
        cited = {key: _citation(works, key) for key in {entry["source"]["key"] or "" for entry in said}}
        for key in sorted(cited, key=cited.__getitem__):
            parts.append(self.filled("ledger.work", cited=cited[key], title=works.get(key, {}).get("title")))
            for entry in said:
                if key == (entry["source"]["key"] or ""):
                    parts += self._card(entry)
            parts.append(self.raw("</ol></section>"))
        return parts or [self.raw("<p>None so far.</p>")]

    def _card(self, entry: dict[str, Any]) -> list[nodes.Node]:
        read, key = texts.read(self.root), entry["source"]["key"]
        text = read.get(key)
        start, end = (
            self.filled(
                f"ledger.{half}",
                entry=entry,
                texts=read,
                by_id=catalogue.by_id(self.read("claims.json")),
                address=text.address if text else catalogue.sources(self.root).get(key, {}).get("address"),
                words=entry["source"]["where"] + (f", version {text.version}" if text else ""),
            )
            for half in ("start", "end")
        )
        if not (entry["printed_tex"] and entry["corrected_tex"]):
            return [start, end]
        return [
            start,
            self.raw('<div class="book-formulas"><div><p>As printed</p>'),
            _formula(entry["printed_tex"]),
            self.raw("</div><div><p>As it should be</p>"),
            _formula(entry["corrected_tex"]),
            self.raw("</div></div>"),
            end,
        ]


def _formula(tex: str) -> nodes.paragraph:
    """A formula that is set by the script of the page, as large as a displayed one."""
    return nodes.paragraph("", "", nodes.math("", rf"\displaystyle {tex.strip()}"))


class SourceItems(Directive):
    """``{source-items} KEY``: every item of a text by section, and where it is answered."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        listed = items.read(self.root, self.arguments[0])
        if not listed:
            raise self.error(f"source-items: nothing lists the items of {self.arguments[0]!r}")
        pages = {record["id"]: record["page"] for record in self.read("figures.json")}
        by_id = catalogue.by_id(self.read("claims.json"))
        return [self.filled("ledger.items", listed=listed, kinds=items.ANSWERS, pages=pages, by_id=by_id)]


class ChapterStatus(Directive):
    """``{chapter-status}``: when, from what and how each chapter was run."""

    def run(self) -> list[nodes.Node]:
        return [self.filled("status.table", status=self.read("status.json"))]


class Provenance(Directive):
    """``{provenance} NAME``: the foot of a chapter, saying what run it shows."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        page = next(page for page in self.read("status.json")["chapters"] if page["page"] == self.arguments[0])
        who = project.identity(self.root)
        name = f"{who.library}:{page['page'].replace('/', '-')}"
        entry = who.bibtex(name, page["title"], who.chapter_url(page["page"]))
        return [self.filled("status.provenance", page=page, entry=entry)]


class SiteUrl(Role):
    """``{siteurl}`NAME` ``: a link to a file at the root of the site, which is there only after the pages are made."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        return [self.filled("prose.file", self.text)], []


def _citation(works: Any, key: str) -> str:
    """Family names and year, as in "Author (2000)", with the title where that does not tell two works apart."""
    if key not in works:
        return key
    mine = project.names_and_year(works[key])
    rivals = [work for work in works.values() if work.get("keywords") == works[key].get("keywords")]
    alone = sum(project.names_and_year(work) == mine for work in rivals) == 1
    return mine if alone else f"{mine}, “{works[key]['title'].partition(':')[0]}”"


def _serve_everything(app: Sphinx, config: Config) -> None:
    """The machinery's style sheet, scripts and MathJax, then what the book has in book/_static, where it has one.

    What an editor left there stays there, and the theme's second search bar goes.
    """
    folders = (Path(__file__).resolve().parents[1] / "static", Path(config.companion_root) / "book" / "_static")
    config.exclude_patterns += ["**/*~", "**/#*#", "**/*.sw[op]"]
    config.html_static_path += [str(folder) for folder in folders if folder.is_dir()]
    # sphinx-book-theme 1.3 with pydata-sphinx-theme 0.17 otherwise draws the search field twice.
    config.html_theme_options["navbar_persistent"] = []


def _finish_page(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Point the edit button at the text source, leave out the script that would load Live Code, escape the title."""
    # The theme writes these into its pages as they are; what is escaped once, its own filters do not escape again.
    for name in ("docstitle", "shorttitle", "project", "author", "copyright"):
        context[name] = escape(context.get(name, ""))
    # Without it the theme writes an empty mode, and complains of that in the console of every new reader.
    context.setdefault("default_mode", "auto")
    branch = project.identity(Path(app.config.companion_root)).ref
    exchange = {f"/edit/{branch}/index.md": f"/edit/{branch}/book/index.md"}
    if pagename.startswith("notebooks/"):
        exchange[f"/edit/{branch}/{pagename}.ipynb"] = f"/edit/{branch}/{pagename}.md"
    if source := reference.source(Path(app.config.companion_root), pagename):
        exchange[f"/edit/{branch}/{pagename}.rst"] = f"/edit/{branch}/{source}"
        # Nobody wrote the text of such a page.
        for button in context.get("header_buttons", []):
            offered = button.get("buttons", [])
            offered[:] = [one for one in offered if "_sources/" not in str(one.get("url"))]
    _exchange_urls(context.get("header_buttons", []), exchange)
    context["script_files"] = [
        script
        for script in context.get("script_files", [])
        if "thebe" not in str(getattr(script, "filename", "")) + str(getattr(script, "attributes", {})).lower()
    ]


def _exchange_urls(buttons: list[dict[str, Any]], exchange: dict[str, str]) -> None:
    for button in buttons:
        for old, new in exchange.items():
            if str(button.get("url", "")).endswith(old):
                button["url"] = button["url"].replace(old, new)
        _exchange_urls(button.get("buttons", []), exchange)


_PILES = 8
"""More than Sphinx has processes, so that no order of their work leaves one with most of the long pages."""
_UNDECLARED = ("sphinx_jupyterbook_latex", "sphinx_multitoc_numbering")


def _read_side_by_side(app: Sphinx) -> None:
    """Two extensions work before and after the pages are read, and do not declare that these may be read in parallel.

    One is for LaTeX, the other numbers sections when all pages are there.
    """
    for name in _UNDECLARED:
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True


def _deal_out(app: Sphinx, env: Any, pages: list[str]) -> None:
    """Put neighbours apart: each process of Sphinx reads a run of the list, and long pages stand beside each other."""
    pages[:] = [page for first in range(_PILES) for page in pages[first::_PILES]]


def _leave_search_to_the_book(app: Sphinx) -> None:
    """Sphinx collects no words for an index of its own, which ``site/search`` would remove."""
    if isinstance(app.builder, StandaloneHTMLBuilder):
        app.builder.index_page = lambda pagename, doctree, title: None  # type: ignore[method-assign]
        app.builder.dump_search_index = lambda: None  # type: ignore[method-assign]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives and roles of all modules, the hooks, and what every page loads."""
    # They build on this module.
    from companion.site import equation_page, packed, reading, releases, report

    app.setup_extension(reference.__name__)
    app.add_config_value("companion_root", "", "env")
    app.add_config_value("companion_waits", "", "env")
    for name, directive in {
        "audit-report": report.AuditReport,
        "chapter-cards": ChapterCards,
        "chapter-status": ChapterStatus,
        "claims-ledger": ClaimsLedger,
        "corrections": Corrections,
        "equation-map": equation_page.EquationMap,
        "figure-gallery": FigureGallery,
        "from-library": FromLibrary,
        "ledger-changes": releases.LedgerChanges,
        "page-facts": reading.PageFacts,
        "provenance": Provenance,
        "published-figure": PublishedFigure,
        "result": Result,
        "source-items": SourceItems,
    }.items():
        app.add_directive(name, directive)
    app.add_domain(numbering.Standard, override=True)
    for name, role in {"checked": report.Checked(), "measured": report.Measured(), "siteurl": SiteUrl()}.items():
        app.add_role(name, role)
    for sheet in ("reading.css", "companion.css"):
        app.add_css_file(sheet)
    # Not deferred: code that is hidden must not show for a moment.
    app.add_js_file("reading.js")
    app.add_js_file("companion.js", defer="defer")
    app.connect("config-inited", _serve_everything)
    app.connect("builder-inited", _read_side_by_side)
    app.connect("builder-inited", _leave_search_to_the_book)
    app.connect("env-before-read-docs", _deal_out)
    app.connect("doctree-resolved", numbering.fill)
    app.connect("html-page-context", reading.follow_the_road, priority=900)
    app.connect("html-page-context", _finish_page, priority=900)
    app.connect("build-finished", packed.note)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
