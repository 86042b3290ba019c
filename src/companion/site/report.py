"""Shows the report that opens an audit, and numbers and marks of claims in prose; an extension of Sphinx.

All read ``_build/claims.json`` when pages are made, so that neither starts a kernel nor goes out of date.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from docutils import nodes
from markupsafe import Markup

from companion import claims
from companion.declaring import notebooks
from companion.site import catalogue, directives
from companion.site.markup import beside, count, enumerated, evidence, fill, verdict_of

_HEADINGS = {
    "failed": "Not confirmed in this build",
    "reproduced": "What held",
    "partly": "What held in part",
    "corrected": "What did not hold as printed, and is corrected",
    "not-reproduced": "What did not hold",
    "undecided": "What the measurement leaves undecided",
    "not-attempted": "Not attempted",
    "result": "Results of this book, planned or derived beforehand and repeated",
    "exploratory": "What this book saw without having planned it",
    "software-check": "Checks of the software, which no total counts",
}
_IN_A_SENTENCE = {
    "reproduced": "held as printed",
    "partly": "held in part",
    "corrected": "{were} corrected",
    "not-reproduced": "{were} not reproduced",
    "undecided": "{were} left undecided",
    "not-attempted": "{were} not attempted",
}
_FOLDED = ("reproduced", "software-check")
"""What held is the longest list and the least surprising one; what checks the software says nothing of the source."""


class AuditReport(directives.Directive):
    """``{audit-report}``: the opening report of the audit it stands in, from the ledger.

    Counts by kind and verdict, seconds, and every claim of the chapter by verdict with a link to where it is measured.
    """

    def run(self) -> list[nodes.Node]:
        """The report of the chapter that this page belongs to."""
        chapter = notebooks.chapter_of(self.env.docname)
        entries = [entry for entry in self.read("claims.json") if entry["chapter"] == chapter]
        if not entries:
            raise self.error(f"audit-report: no claim of {chapter!r} is declared")
        pages = [page for page in self.read("status.json")["chapters"] if page["chapter"] == chapter]
        return [self.raw(markup(entries, pages, self.to_root()))]


def markup(entries: Sequence[Mapping[str, Any]], pages: Sequence[Mapping[str, Any]], to_root: str) -> str:
    """The report on the claims of one chapter, whose ``pages`` are as ``status.json`` holds them."""
    lists = {verdict: [entry for entry in entries if verdict_of(entry)[0] == verdict] for verdict in _HEADINGS}
    return fill(
        "report.audit",
        totals=f"{_in_a_sentence(entries)} {_cost(entries, pages)}",
        said=claims.among(entries)["said"],
        headings=_HEADINGS,
        folded=_FOLDED,
        lists=lists,
        facts=_facts,
        to_root=to_root,
    )


def _in_a_sentence(entries: Sequence[Mapping[str, Any]]) -> str:
    counted = claims.among(entries)
    said, parts = counted["said"], []
    for verdict, words in _IN_A_SENTENCE.items():
        if number := sum(entry["verdict"] == verdict for entry in said):
            parts.append(f"{number} {words.format(were='was' if number == 1 else 'were')}")
    sentence = f"Of {count(len(said), 'statement')} of the source {enumerated(parts)}."
    if failed := sum(entry["holds"] is False for entry in entries):
        sentence += f" In this build {failed} verdict{' is' if failed == 1 else 's are'} not confirmed."
    return f"{sentence} {beside(counted)}".rstrip()


def _cost(entries: Sequence[Mapping[str, Any]], pages: Sequence[Mapping[str, Any]]) -> str:
    ran = [page for page in pages if page["state"] == "finished"]
    if not ran:
        return ""
    names = {page["page"]: "the lesson" if page["page"] == page["chapter"] else "this audit" for page in ran}
    each = " and ".join(f"{names[page['page']]} in {page['seconds']:.0f} s" for page in ran)
    measuring = sum(entry["seconds"] or 0.0 for entry in entries)
    threads = count(ran[-1]["threads"], "thread")
    return f"In this build {each} ran on {threads}; the cells that measure took {measuring:.0f} s of it."


def _facts(entry: Mapping[str, Any]) -> Markup:
    """The numbers of a claim in a sentence; in the ledger what a rival is has a paragraph of its own."""
    facts = "; ".join(f"{name}: {text}" for name, text in evidence(entry).items())
    return Markup(re.sub("<p>(.*?)</p>", r"\1, ", facts) + ".")


class Checked(directives.Role):
    """``{checked}`ID` ``: a mark at the sentence that says a claim, which leads to the claim in the chapter's audit.

    The mark stands for the cell that measures the claim, which the page does not show.
    """

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The mark, or an error in words, which fails the build."""
        entry = next((entry for entry in self.read("claims.json") if entry["id"] == self.text), None)
        if entry is None:
            return self.missed(f"{self.text}: no such claim")
        anchor, audit = claims.anchor_of(self.text), f"notebooks/{notebooks.AUDITS}/{entry['chapter']}"
        reported = audit in self.env.found_docs
        target = f"{audit}.html#report-{anchor}" if reported else f"book/claims.html#ledger-{anchor}"
        return [self.filled("prose.checked", entry, target)], []


class Measured(directives.Role):
    """``{measured}`ID:FORMAT` ``: the measured number of a claim, with a link to where it is measured.

    While a page of the claim's chapter has not run, as on the first site, an ellipsis stands in its place.
    """

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The number, or an error in words, which fails the build."""
        try:
            number, target = quoted(self.text, catalogue.by_id(self.read("claims.json")))
        except ValueError as error:
            pages, chapter = self.read("status.json")["chapters"], self.text.partition(".")[0]
            if any(page["chapter"] == chapter and page["state"] != "finished" for page in pages):
                return [nodes.Text("…")], []
            return self.missed(str(error))
        return [self.filled("prose.measured", number, target)], []


def quoted(text: str, entries: Mapping[str, Mapping[str, Any]]) -> tuple[str, str]:
    """The number that ``text`` asks for, and the address of its measurement from the root of the site.

    Raises ``ValueError`` if there is no such claim, it was not measured, or the number cannot be written in that form.
    """
    match = claims.QUOTED.fullmatch(text)
    if match is None:
        raise ValueError(f"expected ID, ID:FORMAT or ID rival:FORMAT, got {text!r}")
    id, what, form = match["id"], match["what"] or "measured", match["format"]
    if id not in entries:
        raise ValueError(f"{id}: no such claim")
    entry = entries[id]
    value = entry[what]["value"] if what in ("rival", "control") and entry[what] else entry[what]
    if entry["measured"] is None or value is None:
        diverges = entry["measured"] is not None and what == "rival" and entry["rival"] and entry["rival"]["diverges"]
        raise ValueError(f"{id}: its rival diverges" if diverges else f"{id}: this build has no {what} value of it")
    if isinstance(value, bool) or form is None:
        shown = claims.format_value(value)
    else:
        try:
            shown = format(value, form)
        except ValueError as error:
            raise ValueError(f"{id}: {form!r} is no format of the number {value}") from error
    return shown, f"notebooks/{entry['page']}.html#{claims.anchor_of(entry['id'])}"
