"""Shows published figures, the gallery, the claims ledger and the status on pages; an extension of Sphinx.

Every directive but one reads the plain files in ``_build`` (figure.json, claims.json, status.json) and computes
nothing; ``from-library`` shows what a function of the book's library returns.
"""

from __future__ import annotations

import html
import importlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from markupsafe import escape
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective

from companion import claims, plain, project
from companion.declaring import compared, items, texts
from companion.site import catalogue, numbering, reference

__all__ = [
    "VERDICT_MARKS",
    "ChapterCards",
    "ChapterStatus",
    "ClaimsLedger",
    "Corrections",
    "Directive",
    "FigureGallery",
    "FromLibrary",
    "Provenance",
    "PublishedFigure",
    "Result",
    "SourceItems",
    "beside",
    "counts",
    "evidence",
    "in_archive_only",
    "picture",
    "quoted",
    "setup",
    "verdict_of",
]

VERDICT_MARKS = {
    "reproduced": "✓",
    "partly": "◐",
    "corrected": "✎",
    "not-reproduced": "✗",
    "undecided": "?",
    "not-attempted": "–",
    "result": "■",
    "exploratory": "□",
    "software-check": "⚙",
}


_LETTERS = 1.2
"""How many times as large as drawn a page shows a figure at most; all of them the same, so that letters are."""


class Directive(SphinxDirective):
    """What reads the files in ``_build`` and returns HTML."""

    has_content = False

    @property
    def root(self) -> Path:
        """The repository of the book."""
        return Path(self.config.companion_root)

    def read(self, name: str) -> Any:
        """A file of ``_build``."""
        return json.loads((self.root / "_build" / name).read_text(encoding="utf-8"))

    def to_root(self) -> str:
        """Relative path from this page to the root of the site."""
        return "../" * self.env.docname.count("/")

    def raw(self, markup: str) -> nodes.raw:
        """HTML as it is."""
        return nodes.raw("", markup, format="html")

    def parse_caption(self, text: str) -> list[nodes.Node]:
        container = nodes.Element()
        self.state.nested_parse([text], self.content_offset, container)
        paragraphs = [child for child in container.children if isinstance(child, nodes.paragraph)]
        return [node for paragraph in paragraphs for node in paragraph.children]


class PublishedFigure(Directive):
    """``{published-figure} ID``: picture in two themes, numbered caption, anchor, and the fold to cite it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        id = self.arguments[0]
        record = self.read(f"figures/{id}/figure.json")
        figure = nodes.figure(classes=["book-figure"])
        figure += self.raw(picture(record, self.to_root()))
        if "frames" in record:
            figure += self.raw(_frames(record, self.to_root()))
        caption = nodes.caption("", "", *self.parse_caption(record["caption"]))
        caption.source, caption.line = self.get_source_info()
        figure += caption
        beside = _beside_in_a_line(compared.read(self.root)[0].get(id), self.read("claims.json"), self.to_root())
        fold = _fold(record, self.to_root(), project.identity(self.root), beside)
        figure += nodes.legend("", self.raw(fold))
        figure["names"].append(id)
        self.state.document.note_explicit_target(figure, figure)
        return [figure]


def picture(record: dict[str, Any], to_root: str, *, lazy: bool = True) -> str:
    """The two variants of a figure, drawings or images as its dark variant is; the theme shows one of them."""
    id, (width, height) = record["id"], record["size"]
    suffix = "svg" if f"{id}-dark.svg" in record["files"] else "png"
    alt = html.escape(record["alt"], quote=True)
    images = [
        f'<img class="{css}" src="{to_root}figures/{id}/{id}{variant}.{suffix}" width="{width // 2}" '
        f'height="{height // 2}" style="max-width:min(100%,{_LETTERS * width / 2:.0f}px)" alt="{alt}"'
        f"{' loading=lazy' if lazy else ''}>"
        for css, variant in (("only-light", ""), ("only-dark", "-dark"))
    ]
    return f'<div class="book-picture">{"".join(images)}</div>'


def _frames(record: dict[str, Any], to_root: str) -> str:
    """The animation, hidden until the script of the page gives it its controls."""
    id, frames = record["id"], record["frames"]
    width, height = frames["size"]
    count = len(frames["labels"])
    labels = html.escape(json.dumps(frames["labels"], ensure_ascii=False), quote=True)
    images = "".join(
        f'<img class="{css}" src="{to_root}figures/{id}/{id}-frames{variant}.png" width="{width}" '
        f'height="{height * count}" alt="" loading="lazy">'
        for css, variant in (("only-light", ""), ("only-dark", "-dark"))
    )
    return (
        f'<div class="book-frames" data-labels="{labels}" hidden>'
        f'<div class="book-frames-window" style="aspect-ratio: {width} / {height}" role="img">{images}</div></div>'
    )


def in_archive_only(id: str, files: Iterable[str]) -> set[str]:
    """Those of a figure's files that no page shows: they are in its archive, with all the others.

    Of the numbers a table stands alone too, for whoever reads it by its address; arrays are packed once.
    """
    names = set(files)
    shown_as_drawing = f"{id}-dark.svg" in names
    return names & {f"{id}.npz", f"{id}.pdf", f"{id}.png" if shown_as_drawing else f"{id}.svg"}


def _also(id: str, files: Iterable[str]) -> str:
    *others, last = sorted(name.removeprefix(f"{id}.").upper() for name in in_archive_only(id, files))
    return f"{', '.join(others)} and {last}" if others else last


def _fold(record: dict[str, Any], to_root: str, who: project.Identity, beside: str) -> str:
    id, chapter = record["id"], record["chapter"]
    folder = f"{to_root}figures/{id}"
    names = [*sorted(set(record["files"]) - in_archive_only(id, record["files"])), f"{id}.csl.json", "figure.json"]
    downloads = ", ".join(
        f'<a href="{folder}/{name}" download>{name.removeprefix(id).lstrip(".-")}</a>' for name in names
    )
    address = who.chapter_url(record["page"], id)
    entry = numbering.cited(record, numbering.place("figure", id))["bibtex"]
    parameters = ", ".join(f"{name} = {value}" for name, value in record["parameters"].items())
    return (
        '<details class="book-cite"><summary>Cite, download, reproduce</summary>'
        f'<p>Permanent address: <a href="#{id}">{html.escape(address)}</a>{_versioned(record, who)}</p>'
        f'<pre class="book-bibtex">{html.escape(entry)}</pre>'
        f'<p>Download: <a href="{folder}/{id}.zip" download>everything (zip, with {_also(id, record["files"])})</a>, '
        f"{downloads}. "
        f"Source: {html.escape(record['source'])}.{beside}</p>"
        f"<p>Make it again: <code>make chapter NAME={chapter}</code>, version {record['library_version']}, commit "
        f"<code>{html.escape(record['commit'][:12])}{'+dirty' if record['commit'].endswith('+dirty') else ''}</code>, "
        f"parameters {html.escape(parameters) or 'none'}.</p></details>"
    )


def _versioned(record: dict[str, Any], who: project.Identity) -> str:
    """The text of the chapter as it was when it made the figure, where that is a commit."""
    if not re.fullmatch(r"[0-9a-f]{40}", record["commit"]):
        return ""
    source = who.source_url(f"notebooks/{record['page']}.md", record["commit"])
    return f', <a href="{html.escape(source)}">its text in this version</a>'


class FigureGallery(Directive):
    """``{figure-gallery}``: every published figure of the book, with a link to its place, beside its source's."""

    def run(self) -> list[nodes.Node]:
        cards = []
        comparisons, _ = compared.read(self.root)
        entries = self.read("claims.json")
        pages = [page["page"] for page in self.read("status.json")["chapters"]]

        def order(record: dict[str, Any]) -> tuple[int, int]:
            text = (self.root / "notebooks" / f"{record['page']}.md").read_text(encoding="utf-8")
            return pages.index(record["page"]), text.find(f'"{record["id"]}"')

        for record in sorted(self.read("figures.json"), key=order):
            target = f"{self.to_root()}notebooks/{record['page']}.html#{record['id']}"
            cards.append(
                f'<li class="book-card" data-chapter="{record["chapter"]}" data-source="{_kind(record["source"])}">'
                f'<a href="{target}">{picture(record, self.to_root())}'
                f'<span class="book-card-title">{_called(record["id"])}</span></a>'
                f'<span class="book-card-note">{html.escape(record["source"])}</span>'
                f"{_beside(comparisons.get(record['id']), entries, self.to_root())}</li>"
            )
        return [self.raw(f'<ul class="book-cards book-filterable">{"".join(cards)}</ul>')]


def _called(id: str) -> str:
    """A figure as a list names it: the number that its page shows, and the id that addresses have."""
    return f"Figure {numbering.place('figure', id)}, {html.escape(id)}"


def _beside(comparison: compared.Comparison | None, entries: list[dict[str, Any]], to_root: str) -> str:
    """What agrees with the published figure, what differs, and the claims that judge it with their verdicts."""
    if comparison is None:
        return ""
    facts = {"Agrees": html.escape(comparison.agrees), "Differs": html.escape(comparison.differs)}
    links = "".join(f"<li>{link}</li>" for link in _claim_links(comparison, entries, to_root))
    facts["Claims"] = f"<ul>{links}</ul>" if links else ""
    rows = "".join(f"<div><dt>{name}</dt><dd>{fact}</dd></div>" for name, fact in facts.items() if fact)
    return f'<dl class="book-beside">{rows}</dl>'


def _beside_in_a_line(comparison: compared.Comparison | None, entries: list[dict[str, Any]], to_root: str) -> str:
    if comparison is None:
        return ""
    facts = {"Agrees": html.escape(comparison.agrees), "Differs": html.escape(comparison.differs)}
    facts["Claims"] = f"{links}." if (links := ", ".join(_claim_links(comparison, entries, to_root))) else ""
    return "".join(f" {name}: {fact}" for name, fact in facts.items() if fact)


def _claim_links(comparison: compared.Comparison, entries: list[dict[str, Any]], to_root: str) -> list[str]:
    """Links to the rows of the ledger; a claim that is not in it is a problem of the build and has no link."""
    by_id = {entry["id"]: entry for entry in entries}
    links = []
    for id in comparison.claims:
        if id in by_id:
            verdict, label, mark = verdict_of(by_id[id])
            links.append(
                f'<a href="{to_root}book/claims.html#ledger-{claims.anchor_of(id)}">'
                f'{html.escape(id.partition(".")[2])}</a> <span class="book-verdict book-verdict-{verdict}">'
                f'<span aria-hidden="true">{mark}</span> {label}</span>'
            )
    return links


def verdict_of(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    """Kind, words and mark of a claim's verdict; a verdict that the measurement does not confirm is one of its own."""
    verdict = entry["verdict"] if entry["holds"] is not False else "failed"
    label = "not confirmed" if verdict == "failed" else verdict.replace("-", " ")
    return verdict, label, VERDICT_MARKS.get(verdict, "!")


def _kind(source: str) -> str:
    return "this book" if source.strip().lower().startswith("this book") else "after a source"


class ChapterCards(Directive):
    """``{chapter-cards}``: a sentence and a picture for every chapter, in reading order."""

    def run(self) -> list[nodes.Node]:
        figures = {record["id"]: record for record in self.read("figures.json")}
        works = project.references(self.root)
        cards = []
        for page in self.read("status.json")["chapters"]:
            if page["page"] != page["chapter"]:
                continue
            target = f"{self.to_root()}notebooks/{page['chapter']}.html"
            record = figures.get(page["thumbnail"])
            image = picture(record, self.to_root(), lazy=False) if record else ""
            number = numbering.place("chapter", f"notebooks/{page['chapter']}")
            cards.append(
                f'<li class="book-card book-chapter"><a href="{target}">{image}'
                f'<span class="book-card-title">{number}{html.escape(page["title"])}</span></a>'
                f"<p>{html.escape(page['summary'])}</p>"
                f'<p class="book-card-note">After {html.escape(_citation(works, page["source"]))}. '
                f"You need: {html.escape(page['prerequisites'])}.</p>{self._badge(page)}</li>"
            )
        return [self.raw(f'<ul class="book-cards book-chapters">{"".join(cards)}</ul>')]

    def _badge(self, page: dict[str, Any]) -> str:
        """How many claims of a chapter's source are confirmed, and how many have which verdict, with links."""
        ledger = f"{self.to_root()}book/claims.html?chapter={page['chapter']}"
        entries = claims.among([one for one in self.read("claims.json") if one["chapter"] == page["chapter"]])["said"]
        verdicts = [entry["verdict"] for entry in entries]
        judged = sum(entry["holds"] is not None for entry in entries)
        held = sum(bool(entry["holds"]) for entry in entries)
        all_held = held == judged
        marks = "".join(
            f'<a class="book-verdict-{verdict}" href="{ledger}&amp;verdict={verdict}"><span aria-hidden="true">'
            f"{VERDICT_MARKS[verdict]}</span> {count} {verdict.replace('-', ' ')}</a>"
            for verdict in claims.VERDICTS
            if (count := verdicts.count(verdict))
        )
        colour = "reproduced" if all_held else "failed"
        return (
            f'<p class="book-badge"><a class="book-badge-total book-verdict-{colour}" href="{ledger}">'
            f"{held} of {judged} verdicts confirmed</a>{marks}</p>"
        )


class Result(Directive):
    """``{result} FIGURE``: a figure's picture, which leads to its place, beside the content, which says what it shows.

    Where a page of its chapter has not finished there is neither, so that a book of which one chapter was made stands.
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
        if record is None or states != {"finished"}:
            return []
        target = f"{self.to_root()}notebooks/{record['page']}.html#{id}"
        said = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, said)
        shown = f'<div class="book-card book-result"><a href="{target}">{picture(record, self.to_root())}</a><div>'
        return [self.raw(shown), *said.children, self.raw("</div></div>")]


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
        works, read = project.references(self.root), texts.read(self.root)
        entries = self.read("claims.json")
        head = "".join(f'<th scope="col" aria-sort="none">{heading}</th>' for heading in self.HEADINGS)
        rows = "".join(self._row(entry, works, read) for entry in entries)
        return [
            self.raw(
                f"{_totals(entries)}"
                '<div class="book-table"><table class="book-ledger book-sortable book-filterable table">'
                f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
                f"{self._retired()}"
            )
        ]

    def _row(self, entry: dict[str, Any], works: Any, read: Mapping[str, texts.Text]) -> str:
        anchor = claims.anchor_of(entry["id"])
        measured = claims.with_error(entry["measured"], entry["uncertainty"])
        cell = f"{self.to_root()}notebooks/{entry['page']}.html"
        link = f'<a href="{cell}#{anchor}">' if entry["measured"] is not None else f'<a href="{cell}">'
        older = "".join(f'<span id="ledger-{claims.anchor_of(old)}"></span>' for old in entry["was"])
        notes = {
            "The source says": quoted(entry),
            "": entry["because"],
            "Bound": entry["rule"],
            "Route": entry["route"],
            "Run by": entry["run_by"] and f"{entry['run_by']}, {entry['commit']}",
            "Expected": entry["expects"] and entry["expects"]["why"],
            "Found": entry["found"] and _found(entry["found"]),
        }
        said = "".join(
            f'<p class="book-because">{name and f"{name}: "}{plain.typeset(note)}</p>'
            for name, note in notes.items()
            if note
        )
        parts = ", ".join(
            f'<a href="#ledger-{claims.anchor_of(part)}">{html.escape(part.partition(".")[2])}</a>'
            for part in entry["parts"]
        )
        verdict, label, mark = verdict_of(entry)
        kind = entry["kind"]
        return (
            f'<tr id="ledger-{anchor}" data-chapter="{entry["chapter"]}" data-kind="{kind}" data-verdict="{verdict}">'
            f"<td>{older}{link}<code>{html.escape(entry['id'])}</code></a>"
            f"<p>{plain.typeset(entry['says'])}</p>{said}{f'<p>Parts: {parts}</p>' if parts else ''}</td>"
            f"<td>{kind}</td><td>{_place(entry, works, read)}</td>"
            f'<td data-value="{_sort_value(entry["published"])}">{_wanted(entry)}</td>'
            f'<td data-value="{_sort_value(entry["measured"])}">{measured}</td>'
            f"<td>{_rival(entry)}</td>"
            f'<td data-value="{_sort_value(entry["gap"])}">{_short(entry["gap"], entry["measured"])}</td>'
            f'<td data-value="{_sort_value(entry["bound"])}">{_bound(entry)}</td>'
            f'<td class="book-verdict book-verdict-{verdict}"><span aria-hidden="true">{mark}</span> {label}</td></tr>'
        )

    def _retired(self) -> str:
        """Claims that are no longer made, so that whoever cited one finds out why."""
        gone = self.read("status.json")["retired"]
        rows = "".join(
            f'<li id="ledger-{claims.anchor_of(one["id"])}"><code>{html.escape(one["id"])}</code> '
            f"{plain.typeset(one['says'])} <em>{plain.typeset(one['reason'])}</em></li>"
            for one in gone
        )
        summary = f"{len(gone)} claims were retired: their ids stay, with the reason"
        return f"<details><summary>{summary}</summary><ul>{rows}</ul></details>" if gone else ""


def _totals(entries: Sequence[Mapping[str, Any]]) -> str:
    """How many claims of the sources have which kind and which verdict; what no total counts stands apart."""
    counted = claims.among(entries)
    said = counted["said"]
    held = sum(bool(entry["holds"]) for entry in said)
    judged = sum(entry["holds"] is not None for entry in said)
    words = f"{len(said)} claims of the sources. In this build {held} of {judged} verdicts are confirmed."
    return f'<p class="book-totals">{words} {beside(counted)}</p>{counts(said)}'


def beside(counted: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """What stands beside the claims of the sources, in a sentence; ``counted`` is as ``claims.among`` has it."""
    parts = []
    for name, one, many in (
        ("parts", "part of one that held in part", "parts of those that held in part"),
        ("external", "claim of another work", "claims of other works"),
    ):
        if number := len(counted[name]):
            parts.append(f"{number} {one if number == 1 else many}")
    if own := counted["own"]:
        results = sum(entry["verdict"] == "result" for entry in own)
        parts.append(f"{results} result{'' if results == 1 else 's'} of this book")
        if others := len(own) - results:
            parts.append(f"{others} that {'is' if others == 1 else 'are'} exploratory or undecided")
    if checks := len(counted["checks"]):
        parts.append(f"{checks} check{'' if checks == 1 else 's'} of the software")
    if not parts:
        return ""
    listed = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    return f"Beside them, in no total, stand {listed}."


def quoted(entry: Mapping[str, Any]) -> str:
    """The words of the source between quotation marks, their formulas as letters, or nothing."""
    return f"“{plain.plain(entry['quote'])}”" if entry["quote"] else ""


def counts(said: Sequence[Mapping[str, Any]]) -> str:
    """A table of claims by kind and verdict."""
    verdicts = [verdict for verdict in claims.VERDICTS if any(entry["verdict"] == verdict for entry in said)]
    kinds = [kind for kind in claims.KINDS if any(entry["kind"] == kind for entry in said)]
    head = "".join(f'<th scope="col">{_verdict_words(verdict)}</th>' for verdict in verdicts)

    def row(name: str, some: Sequence[Mapping[str, Any]]) -> str:
        counts = "".join(f"<td>{sum(one['verdict'] == verdict for one in some)}</td>" for verdict in verdicts)
        return f'<tr><th scope="row">{name}</th>{counts}<td>{len(some)}</td></tr>'

    rows = "".join(row(kind, [one for one in said if one["kind"] == kind]) for kind in kinds)
    return (
        '<div class="book-table"><table class="book-counts table"><thead><tr><th scope="col">Kind</th>'
        f'{head}<th scope="col">all</th></tr></thead><tbody>{rows}{row("all", said)}</tbody></table></div>'
    )


def _verdict_words(verdict: str) -> str:
    return f'<span aria-hidden="true">{VERDICT_MARKS[verdict]}</span> {verdict.replace("-", " ")}'


def _place(entry: Mapping[str, Any], works: Any, read: Mapping[str, texts.Text]) -> str:
    """Where a statement stands, and what became of its text."""
    key = entry["source"]["key"]
    if not key:
        return "this book"
    said = f"{html.escape(_citation(works, key))}, {plain.typeset(entry['source']['where'])}"
    if entry["external"]:
        said += ' <span class="book-external">external</span>'
    said += _became(entry, read.get(key))
    return said


def _became(entry: Mapping[str, Any], text: texts.Text | None) -> str:
    """What took the place of a text, and what that makes of the claim."""
    if text is None or text.status != "superseded":
        return ""
    said = html.escape(f"superseded by {text.by} since {text.since}; the claim is {entry['state']}")
    return f' <span class="book-state">{said}</span>'


def _wanted(entry: Mapping[str, Any]) -> str:
    """What is printed, or expected by us; the printed value of a correction is struck out."""
    published = claims.format_value(entry["published"])
    if entry["corrected"] is not None:
        struck = f"<del>{published}</del> " if entry["published"] is not None else ""
        return f"{struck}{claims.format_value(entry['corrected'])}"
    if entry["published"] is None and entry["expects"]:
        return html.escape(f"expected {claims.expectation_of(entry['expects'])}")
    return published


def _rival(entry: Mapping[str, Any]) -> str:
    """The wrong answer, or the case where a refuted statement is true, with what it gives and how far it is off."""
    name, other = ("rival", entry["rival"]) if entry["rival"] else ("control", entry["control"])
    if not other:
        return "–"
    shown = _value(other)
    far = f", {other['gap'] / other['bound']:.3g} bounds off" if other["gap"] and other["bound"] else ""
    far = "" if isinstance(other["value"], bool) or name == "control" else far
    words = f"<p>{plain.typeset(other['says'] or 'the printed form')}</p>"
    null = "" if entry["resolves"] else "<p>A null model: the reading is too coarse for a believable rival.</p>"
    return f"{words}{name} {shown}{far}{null}"


def _bound(entry: Mapping[str, Any]) -> str:
    """The bound that decided; beneath it what of it was declared, k, and the distance in uncertainties."""
    shown = _short(entry["bound"], entry["measured"])
    if entry["z"] is None:
        return shown
    return f"{shown}<p>{entry['declared']:.2g} + {entry['k']:.3g} u</p><p>z {entry['z']:.2g}</p>"


def _value(other: Mapping[str, Any]) -> str:
    """The number of a rival or a control."""
    return "diverges" if other["diverges"] else claims.with_error(other["value"], other["uncertainty"])


def _found(found: Mapping[str, Any]) -> str:
    bound = f" within {found['bound']:.2g}" if found.get("bound") else ""
    return f"{claims.format_value(found['value'])}{bound}. {found.get('why', '')}".strip()


class Corrections(Directive):
    """``{corrections} VERDICT``: the claims of that verdict by source, a card each that can be understood alone."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        verdict = self.arguments[0]
        if verdict not in claims.VERDICTS:
            raise self.error(f"corrections: expected one of {', '.join(claims.VERDICTS)}, got {verdict!r}")
        works = project.references(self.root)
        by_source: dict[str, list[dict[str, Any]]] = {}
        for entry in self.read("claims.json"):
            if entry["verdict"] == verdict and entry["kind"] != claims.OWN:
                by_source.setdefault(entry["source"]["key"] or "", []).append(entry)
        if not by_source:
            return [self.raw("<p>None so far.</p>")]
        parts: list[nodes.Node] = []
        for key in sorted(by_source, key=lambda key: _citation(works, key)):
            title = f", {html.escape(works[key]['title'])}" if key in works else ""
            parts.append(
                self.raw(
                    f'<section class="book-corrections" aria-label="{html.escape(_citation(works, key), quote=True)}">'
                    f"<p><strong>{html.escape(_citation(works, key))}</strong>{title}</p><ol>"
                )
            )
            for entry in by_source[key]:
                parts += self._card(entry)
            parts.append(self.raw("</ol></section>"))
        return parts

    def _card(self, entry: dict[str, Any]) -> list[nodes.Node]:
        anchor = claims.anchor_of(entry["id"])
        cell = f"{self.to_root()}notebooks/{entry['page']}.html#{anchor}"
        before = {"It says": plain.typeset(quoted(entry) or entry["says"])}
        if entry["quote"]:
            before["In our words"] = plain.typeset(entry["says"])
        before["Where"] = self._where(entry)
        after = {} if entry["measured"] is None else evidence(entry)
        if entry["parts"]:
            after["Parts"] = f"<ul>{''.join(self._part(part) for part in entry['parts'])}</ul>"
        after["Because"] = plain.typeset(entry["because"] or "")
        link = cell if entry["measured"] is not None else cell.partition("#")[0]
        after["Proof" if entry["measured"] is not None else "Page"] = f'<a href="{link}">{html.escape(entry["id"])}</a>'

        def rows(facts: Mapping[str, str]) -> str:
            return "<dl>" + "".join(f"<dt>{name}</dt><dd>{fact}</dd>" for name, fact in facts.items()) + "</dl>"

        start, end = f'<li id="{entry["verdict"]}-{anchor}">{rows(before)}', f"{rows(after)}</li>"
        if not (entry["printed_tex"] and entry["corrected_tex"]):
            return [self.raw(start + end)]
        return [
            self.raw(f'{start}<div class="book-formulas"><div><p>As printed</p>'),
            _formula(entry["printed_tex"]),
            self.raw("</div><div><p>As it should be</p>"),
            _formula(entry["corrected_tex"]),
            self.raw(f"</div></div>{end}"),
        ]

    def _part(self, id: str) -> str:
        """A part of a statement that is partly right: its verdict, and what it says."""
        entry = next((one for one in self.read("claims.json") if id in (one["id"], *one["was"])), None)
        if entry is None:
            return f"<li><code>{html.escape(id)}</code></li>"
        verdict, label, mark = verdict_of(entry)
        return (
            f'<li><span class="book-verdict book-verdict-{verdict}"><span aria-hidden="true">{mark}</span> '
            f"{label}</span> "
            f'<a href="{self.to_root()}book/claims.html#ledger-{claims.anchor_of(entry["id"])}">'
            f"{html.escape(entry['id'].partition('.')[2])}</a>: {plain.typeset(entry['says'])}</li>"
        )

    def _where(self, entry: dict[str, Any]) -> str:
        """The place in the source, with a link to it."""
        key = entry["source"]["key"]
        text = texts.read(self.root).get(key)
        address = text.address if text else (catalogue.sources(self.root).get(key) or {}).get("address")
        version = f", version {text.version}" if text else ""
        words = plain.typeset(f"{entry['source']['where']}{version}")
        place = f'<a href="{html.escape(address, quote=True)}">{words}</a>' if address else words
        return place + _became(entry, text)


def evidence(entry: Mapping[str, Any]) -> dict[str, str]:
    """What was measured and what it is compared with, in words that need nothing else of the ledger."""
    facts: dict[str, str] = {}
    measured = claims.with_error(entry["measured"], entry["uncertainty"])
    if entry["kind"] == "formula":
        facts["Checked by"] = plain.typeset(entry["route"] or "")
        right = "the corrected form" if entry["verdict"] == "corrected" else "the statement"
        facts["Deviation"] = f"{right}: {claims.format_value(entry['measured'], 2)}"
        if other := entry["rival"] or entry["control"]:
            name = "the printed form" if entry["verdict"] == "corrected" else plain.typeset(other["says"] or "")
            far = "diverges" if other["diverges"] else claims.format_value(other["value"], 2)
            facts["Deviation"] += f"; {name}: {far}"
        if entry["found"]:
            facts["Found"] = plain.typeset(_found(entry["found"]))
        return facts
    if entry["published"] is not None:
        facts["Published"] = claims.format_value(entry["published"])
    if entry["corrected"] is not None:
        facts["Right"] = claims.format_value(entry["corrected"])
    if entry["expects"]:
        facts["Expected"] = plain.typeset(f"{claims.expectation_of(entry['expects'])}. {entry['expects']['why']}")
    facts["Measured here"] = measured
    if entry["found"]:
        facts["Found"] = plain.typeset(_found(entry["found"]))
    if entry["rival"] or entry["control"]:
        facts["Rival" if entry["rival"] else "Control"] = _rival(entry)
    if entry["route"]:
        facts["Shown by"] = plain.typeset(entry["route"])
    return facts


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
        entries = self.read("claims.json")
        by_id = {old: entry for entry in entries for old in (entry["id"], *entry["was"])}
        pages = {record["id"]: record["page"] for record in self.read("figures.json")}
        head = "".join(
            f'<th scope="col" aria-sort="none">{name}</th>' for name in ("Section", "Kind", "Item", "Answered")
        )
        rows = "".join(
            f'<tr data-kind="{item.kind}"><td>{html.escape(item.section)}</td><td>{item.kind}</td>'
            f"<td>{html.escape(item.item)}</td><td>{self._answers(item, by_id, pages)}</td></tr>"
            for item in listed
        )
        return [
            self.raw(
                '<div class="book-table"><table class="book-sortable book-filterable book-items table">'
                f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
            )
        ]

    def _answers(self, item: items.Item, by_id: dict[str, dict[str, Any]], pages: dict[str, str]) -> str:
        found = [self._claim(id, by_id) for id in item.answered.get("claim", ())]
        for id in item.answered.get("figure", ()):
            # A figure that is not published leads to a place that is not there, which the check of links finds.
            target = f"{self.to_root()}notebooks/{pages.get(id, 'unknown')}.html#{id}"
            found.append(f'<a href="{target}">{_called(id)}</a>')
        for place in item.answered.get("page", ()):
            page, _, anchor = place.partition("#")
            folder = "" if page.startswith("book/") else "notebooks/"
            target = f"{self.to_root()}{folder}{page}.html" + (f"#{anchor}" if anchor else "")
            found.append(f'<a href="{target}">{html.escape(place)}</a>')
        found += [html.escape(reason) for reason in item.answered.get("reason", ())]
        return "<br>".join(found)

    def _claim(self, id: str, by_id: dict[str, dict[str, Any]]) -> str:
        if id not in by_id:
            return f"<code>{html.escape(id)}</code>, retired"
        entry = by_id[id]
        verdict, label, mark = verdict_of(entry)
        anchor = f"#{claims.anchor_of(entry['id'])}" if entry["measured"] is not None else ""
        target = f"{self.to_root()}notebooks/{entry['page']}.html{anchor}"
        return (
            f'<a href="{target}">{html.escape(entry["id"].partition(".")[2])}</a> '
            f'<span class="book-verdict book-verdict-{verdict}"><span aria-hidden="true">{mark}</span> {label}</span>'
        )


class ChapterStatus(Directive):
    """``{chapter-status}``: when, from what and how each chapter was run."""

    def run(self) -> list[nodes.Node]:
        status = self.read("status.json")
        head = "".join(
            f'<th scope="col" aria-sort="none">{heading}</th>'
            for heading in (
                "Chapter",
                "State",
                "Claims",
                "Figures",
                "Seconds",
                "Peak memory",
                "Commit",
                "Key",
                "Run at",
            )
        )
        rows = "".join(self._row(page) for page in status["chapters"])
        dirty = ", with uncommitted changes" if status["dirty"] else ""
        return [
            self.raw(
                f"<p>This site was built from commit <code>{html.escape(status['commit'][:12])}</code>{dirty}, "
                f"version {html.escape(status['version'])}. The same facts for programs: "
                f'<a href="{self.to_root()}status.json">status.json</a>.</p>'
                f'<div class="book-table"><table class="book-sortable table"><thead><tr>{head}</tr></thead>'
                f"<tbody>{rows}</tbody></table></div>"
            )
        ]

    def _row(self, page: dict[str, Any]) -> str:
        name = f'<a href="{self.to_root()}notebooks/{page["page"]}.html">{html.escape(page["title"])}</a>'
        if page["state"] != "finished":
            return f"<tr><td>{name}</td><td>{page['state']}</td>{'<td>–</td>' * 7}</tr>"
        return (
            f"<tr><td>{name}</td><td>finished</td><td>{page['claims_held']}/{page['claims']}</td><td>{page['figures']}</td>"
            f'<td data-value="{page["seconds"]}">{page["seconds"]:.1f}</td>'
            f'<td data-value="{page["peak_bytes"]}">{page["peak_bytes"] / 1e6:.0f} MB</td>'
            f"<td><code>{_commit(page)}</code></td><td><code>{page['key'][:12]}</code></td>"
            f"<td>{page['finished']}</td></tr>"
        )


class Provenance(Directive):
    """``{provenance} NAME``: the foot of a chapter, saying what run it shows."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        page = next(page for page in self.read("status.json")["chapters"] if page["page"] == self.arguments[0])
        versions = ", ".join(f"{name} {version}" for name, version in page["versions"].items())
        parameters = ", ".join(f"{name} = {value}" for name, value in page["parameters"].items())
        facts = {
            "Key": f"<code>{page['key'][:16]}</code>",
            "Commit": f"<code>{_commit(page)}</code>",
            "Run": f"{page['finished']}, {page['seconds']:.1f} s, peak memory {page['peak_bytes'] / 1e6:.0f} MB, "
            f"{page['threads']} thread(s)",
            "Parameters": html.escape(parameters),
            "Versions": html.escape(f"Python {page['python']}, {versions}"),
            "Run it again": f"<code>make chapter NAME={page['chapter']}</code>",
        }
        items = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts.items())
        who = project.identity(self.root)
        address = who.chapter_url(page["page"])
        entry = who.bibtex(f"{who.library}:{page['page'].replace('/', '-')}", page["title"], address)
        return [
            self.raw(
                f'<aside class="book-provenance" aria-label="How this page was made"><dl>{items}</dl>'
                '<details class="book-cite"><summary>Cite this chapter</summary>'
                f'<pre class="book-bibtex">{html.escape(entry)}</pre></details></aside>'
            )
        ]


def _site_url(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, options: Any = None, content: Any = None
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """``{siteurl}`NAME` ``: a link to a file at the root of the site, which is there only after the pages are made."""
    to_root = "../" * inliner.document.settings.env.docname.count("/")
    return [
        nodes.raw("", f'<a href="{to_root}{html.escape(text, quote=True)}">{html.escape(text)}</a>', format="html")
    ], []


def _commit(page: dict[str, Any]) -> str:
    return html.escape(page["commit"][:12]) + (" + uncommitted changes" if page["dirty"] else "")


def _citation(works: Any, key: str) -> str:
    """Family names and year, as in "Author (2000)", with the title where that does not tell two works apart."""
    if key not in works:
        return key
    mine = project.names_and_year(works[key])
    rivals = [work for work in works.values() if work.get("keywords") == works[key].get("keywords")]
    alone = sum(project.names_and_year(work) == mine for work in rivals) == 1
    return mine if alone else f"{mine}, “{works[key]['title'].partition(':')[0]}”"


def _short(value: float | None, kind: Any) -> str:
    return "–" if value is None or isinstance(kind, bool) else f"{value:.2g}"


def _sort_value(value: float | bool | None) -> str:
    return "" if value is None else repr(float(value))


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
    branch = project.identity(Path(app.config.companion_root)).ref
    exchange = {f"/edit/{branch}/index.md": f"/edit/{branch}/book/index.md"}
    if pagename.startswith("notebooks/"):
        exchange[f"/edit/{branch}/{pagename}.ipynb"] = f"/edit/{branch}/{pagename}.md"
    if source := reference.source(Path(app.config.companion_root), pagename):
        exchange[f"/edit/{branch}/{pagename}.rst"] = f"/edit/{branch}/{source}"
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


_UNDECLARED = ("sphinx_jupyterbook_latex", "sphinx_multitoc_numbering")


def _read_side_by_side(app: Sphinx) -> None:
    """Two extensions work before and after the pages are read, and do not declare that these may be read in parallel.

    One is for LaTeX, the other numbers sections when all pages are there.
    """
    for name in _UNDECLARED:
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives and the hooks."""
    app.setup_extension(reference.__name__)
    app.setup_extension(numbering.__name__)
    app.setup_extension("companion.site.reading")
    app.setup_extension("companion.site.report")
    app.setup_extension("companion.site.equation_page")
    app.setup_extension("companion.evidence.evidence_page")
    app.setup_extension("companion.site.packed")
    app.setup_extension("companion.site.releases")
    app.add_config_value("companion_root", "", "env")
    app.add_directive("published-figure", PublishedFigure)
    app.add_directive("figure-gallery", FigureGallery)
    app.add_directive("chapter-cards", ChapterCards)
    app.add_directive("claims-ledger", ClaimsLedger)
    app.add_directive("from-library", FromLibrary)
    app.add_directive("corrections", Corrections)
    app.add_directive("result", Result)
    app.add_directive("source-items", SourceItems)
    app.add_directive("chapter-status", ChapterStatus)
    app.add_directive("provenance", Provenance)
    app.add_role("siteurl", _site_url)
    app.add_css_file("companion.css")
    app.add_js_file("companion.js", defer="defer")
    app.connect("config-inited", _serve_everything)
    app.connect("builder-inited", _read_side_by_side)
    app.connect("html-page-context", _finish_page, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
