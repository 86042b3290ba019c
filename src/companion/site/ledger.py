"""Shows claims: the ledger of each chapter, corrections, the report of an audit, and numbers and marks in prose.

All read ``_build/claims.json`` when pages are made, so that none goes out of date and none starts a kernel.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from docutils import nodes
from markupsafe import Markup

from companion import claims, pages, project
from companion.claims.ledger import by_id, quoted, retired
from companion.site.onpage import (
    Directive,
    Entry,
    Role,
    address,
    enumerated,
    fill,
    found_of,
    page_of,
    source_of,
    typeset,
    verdict_of,
)

_OPEN = ("failed", "partly", "corrected", "not-reproduced", "undecided")
"""What a referee reads first; the other lists are folded."""


class ClaimsLedger(Directive):
    """``{claims-ledger} CHAPTER``: its claims, sortable and filtered; without a name the totals of all chapters."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        works, entries, status = project.references(self.root), self.claims(), self.read("status.json")
        titles = {page["chapter"]: page["title"] for page in status["chapters"] if page["page"] == page["chapter"]}
        if not self.arguments:
            by_chapter = {name: [one for one in entries if one["chapter"] == name] for name in titles}
            counted = {name: claims.among(of_chapter) for name, of_chapter in by_chapter.items() if of_chapter}
            whole = claims.among(entries)
            facts = {"counted": counted, "titles": titles, "whole": whole, "beside": beside(whole)}
            return [self.filled("ledger.index", **facts)]
        if (chapter := self.arguments[0]) not in titles:
            raise self.error(f"claims-ledger: expected one of {sorted(titles)}, got {chapter!r}")
        own = [entry for entry in entries if entry["chapter"] == chapter]
        here = claims.among(own)
        facts = {"said": here["said"], "beside": beside(here), "retired": retired(self.root, [chapter])}
        return [self.filled("ledger.chapter", entries=own, **facts, cited=lambda key: source_of(works, key))]


class Corrections(Directive):
    """``{corrections} VERDICT``: the claims of that verdict by source, a card each that can be understood alone."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        verdict = self.arguments[0]
        if verdict not in claims.VERDICTS:
            raise self.error(f"corrections: expected one of {', '.join(claims.VERDICTS)}, got {verdict!r}")
        works, entries = project.references(self.root), self.claims()
        said = [entry for entry in entries if entry["verdict"] == verdict and entry["kind"] != claims.OWN]
        cited = {key: source_of(works, key) for key in {entry["source"]["key"] for entry in said}}
        parts: list[nodes.Node] = []
        for key in sorted(cited, key=cited.__getitem__):
            work = works.get(key, {})
            parts.append(self.filled("ledger.work", cited=cited[key], title=work.get("title"), verdict=verdict))
            for entry in said:
                if key == entry["source"]["key"]:
                    parts += self._card(entry, address(work), by_id(entries))
            parts.append(self.raw("</ol></section>"))
        return parts or [self.raw("<p>None so far.</p>")]

    def _card(self, entry: Entry, place: str | None, ledger: Mapping[str, Entry]) -> list[nodes.Node]:
        facts = {"entry": entry, "address": place, "ledger": ledger, "evidence": evidence(entry)}
        start, end = (self.filled(f"ledger.{half}", **facts) for half in ("start", "end"))
        if not (entry["printed_tex"] and entry["corrected_tex"]):
            return [start, end]
        between, closed = "</div><div><p>As it should be</p>", "</div></div>"
        return [
            *(start, self.raw('<div class="book-formulas"><div><p>As printed</p>'), _formula(entry["printed_tex"])),
            *(self.raw(between), _formula(entry["corrected_tex"]), self.raw(closed), end),
        ]


def _formula(tex: str) -> nodes.paragraph:
    """A formula that is set by the script of the page, as large as a displayed one."""
    return nodes.paragraph("", "", nodes.math("", rf"\displaystyle {tex.strip()}"))


class SourceItems(Directive):
    """``{source-items} KEY``: every item of a text by its place, and where it is answered."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        key, entries = self.arguments[0], self.claims()
        if not (listed := claims.items(self.root, key)):
            raise self.error(f"source-items: no file of claims lists the items of {key!r}")
        places = {record["id"]: record["page"] for record in self.read("figures.json")}
        return [self.filled("ledger.items", listed=listed, ledger=by_id(entries), figures=places)]


class AuditReport(Directive):
    """``{audit-report}``: the opening report of the audit it stands in: counts, seconds, and every claim by verdict."""

    def run(self) -> list[nodes.Node]:
        chapter = pages.chapter_of(self.env.docname)
        entries = [entry for entry in self.claims() if entry["chapter"] == chapter]
        if not entries:
            raise self.error(f"audit-report: no claim of {chapter!r} is declared")
        said = claims.among(entries)["said"]
        report = self.filled(
            "ledger.report",
            totals=f"{_in_a_sentence(entries)} {self._cost(chapter)}",
            said=said,
            open=_OPEN,
            lists={name: [entry for entry in entries if verdict_of(entry)[0] == name] for name in claims.WORDS},
            facts=_facts,
        )
        return [report]

    def _cost(self, chapter: str) -> str:
        listed = self.read("status.json")["chapters"]
        ran = [page for page in listed if page["chapter"] == chapter and page["state"] == "finished"]
        names = {page["page"]: "the lesson" if page["page"] == chapter else "this audit" for page in ran}
        each = " and ".join(f"{names[page['page']]} ran for {page['seconds']:.0f} s" for page in ran)
        return f"In this build {each}." if ran else ""


def _in_a_sentence(entries: Sequence[Entry]) -> str:
    counted = claims.among(entries)
    said, parts = counted["said"], []
    for verdict, words in claims.WORDS.items():
        if number := sum(entry["verdict"] == verdict for entry in said):
            parts.append(f"{number} {words.sentence.format(were='was' if number == 1 else 'were')}")
    sentence = f"Of {len(said)} statement{'s' * (len(said) != 1)} of the source {enumerated(parts)}." if said else ""
    if failed := sum(entry["holds"] is False for entry in entries):
        sentence += f" In this build {failed} verdict{' is' if failed == 1 else 's are'} not confirmed."
    return f"{sentence} {beside(counted)}".strip()


def beside(counted: Mapping[str, Sequence[Entry]]) -> str:
    """What stands beside the claims of the sources, in a sentence; ``counted`` is as ``claims.among`` has it."""
    numbers = {name: len(some) for name, some in counted.items() if name != "said"}
    results = sum(entry["verdict"] == "result" for entry in counted["own"])
    others = numbers["own"] - results
    stand = [
        f"{numbers['parts']} part{'s' * (numbers['parts'] != 1)} of what held in part" * bool(numbers["parts"]),
        f"{numbers['external']} of other works" * bool(numbers["external"]),
        f"{results} result{'s' * (results != 1)} of this book" * bool(results),
        f"{others} that {'is' if others == 1 else 'are'} exploratory or undecided" * bool(others),
    ]
    return f"Beside them, in no total: {enumerated(list(filter(None, stand)))}." if any(stand) else ""


def _facts(entry: Entry) -> Markup:
    """The numbers of a claim in a sentence; in the ledger what a rival is has a paragraph of its own."""
    facts = "; ".join(f"{name}: {text}" for name, text in evidence(entry).items())
    return Markup(re.sub("<p>(.*?)</p>", r"\1, ", facts) + ".")


def evidence(entry: Entry) -> dict[str, Markup]:
    """What was measured and what it is compared with, in words that need nothing else of the ledger."""
    other = entry["rival"] or entry["control"]
    found = typeset(found_of(entry["found"])) if entry["found"] else None
    facts: dict[str, str | None]
    if entry["kind"] == "formula":
        is_corrected = entry["verdict"] == "corrected"
        right = "the corrected form" if is_corrected else "the statement"
        deviation = f"{right}: {claims.format_value(entry['measured'], 2)}"
        if other:
            name = "the printed form" if is_corrected else typeset(other["says"])
            far = "diverges" if other["diverges"] else claims.format_value(other["value"], 2)
            deviation += f"; {name}: {far}"
        facts = {"Deviation": deviation, "Found": found}
    else:
        published, corrected, expects = entry["published"], entry["corrected"], entry["expects"]
        facts = {
            "Published": None if published is None else claims.format_value(published),
            "Right": None if corrected is None else claims.format_value(corrected),
            "Expected": expects and claims.expectation_of(expects),
            "Measured here": claims.with_error(entry["measured"], entry["uncertainty"]),
            "Found": found,
            "Rival" if entry["rival"] else "Control": fill("ledger.rival", entry) if other else None,
        }
    return {name: Markup(fact) for name, fact in facts.items() if fact}


class PageClaims(Directive):
    """``{page-claims} NAME``: a closed fold with the claims of the content, which checks of the page measure unseen."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        ledger = by_id(self.claims())
        entries = [ledger[id] for id in self.content if id in ledger]
        source = pages.checks_file(Path(), self.arguments[0]).as_posix()
        where = project.identity(self.root).source_url(source)
        return [self.filled("ledger.unseen", entries=entries, facts=_facts, source=source, where=where)]


class Checked(Role):
    """``{checked}`ID` ``: a mark at the sentence that says a claim, which leads to the claim in the chapter's audit."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        if (entry := by_id(self.claims()).get(self.text)) is None:
            return self.missed(f"{self.text}: no such claim")
        audit = f"notebooks/{pages.AUDITS}/{entry['chapter']}"
        reported = audit in self.env.found_docs and entry["page"] == entry["chapter"]
        target = f"{audit}.html#report-{claims.anchor_of(entry['id'])}" if reported else page_of(entry)
        return [self.filled("page.checked", entry, target)], []


class Measured(Role):
    """``{measured}`ID:FORMAT` ``: the measured number of a claim, with a link to where it is measured.

    While a page of the claim's chapter has not run, as on the first site, an ellipsis stands in its place.
    """

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        try:
            number, entry = quoted(self.text, by_id(self.claims()))
        except ValueError as error:
            listed, chapter = self.read("status.json")["chapters"], self.text.partition(".")[0]
            if any(page["chapter"] == chapter and page["state"] != "finished" for page in listed):
                return [nodes.Text("…")], []
            return self.missed(str(error))
        return [self.filled("page.measured", number, page_of(entry))], []
