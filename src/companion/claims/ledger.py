"""Makes the ledger, a list of all claims: what was declared, what was measured, and the verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from companion import pages, project
from companion.claims import read
from companion.claims.judge import Judgement, Measurement, allowed, expected, factor, judge
from companion.claims.measure import recorded
from companion.claims.model import Claim
from companion.claims.words import QUOTED, format_value
from companion.manuscript import spaced

Entry = dict[str, Any]
"""A claim as ``_build/claims.json`` holds it."""


def collect(root: Path, results: Mapping[str, Path]) -> list[Entry]:
    """The claims of all chapters judged by the measurements in the folders of ``results``, one a page.

    A page without a result has measured nothing: its claims do not hold. Retired claims are left out.
    """
    works, entries = project.references(root), []
    for chapter, claims in _by_chapter(root).items():
        measured: dict[str, tuple[str, Measurement]] = {}
        seconds: dict[str, float] = {}
        for page in (page for page in (chapter, f"{pages.AUDITS}/{chapter}") if page in results):
            measured |= {id: (page, value) for id, value in recorded(results[page])}
            seconds |= _seconds(results[page])
        own = []
        for claim in claims:
            if claim.retired:
                continue
            page, measurement = measured.get(claim.id, (home(root, claim.chapter), None))
            entry = _entry(claim, measurement, judge(claim, measurement), works)
            own.append(entry | {"page": page, "seconds": seconds.get(claim.id)})
        _join_parts(own)
        entries += own
    return entries


def problems(entries: Sequence[Entry], chapters: Sequence[str]) -> list[str]:
    """Every reason why a build of ``chapters`` whose ledger is ``entries`` must fail, a line each."""
    failed = [entry for entry in entries if entry["holds"] is False and entry["chapter"] in chapters]
    return [f"claim {entry['id']}: {entry['reason']}" for entry in failed]


def retired(root: Path, chapters: Sequence[str] | None = None) -> list[Entry]:
    """Claims that are no claims any more: id, chapter, page, says, reason, was."""
    return [
        {
            "id": claim.id,
            "chapter": claim.chapter,
            "page": home(root, claim.chapter),
            "says": spaced(claim.says),
            "reason": spaced(claim.retired),
            "was": list(claim.was),
        }
        for claims in _by_chapter(root, chapters).values()
        for claim in claims
        if claim.retired
    ]


def by_id(entries: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Entries by their ids, and by those that they had before."""
    return {id: entry for entry in entries for id in (*entry["was"], entry["id"])}


def home(root: Path, chapter: str) -> str:
    """The page that speaks of claims which no page measures: the audit of the chapter, where there is one."""
    audit = f"{pages.AUDITS}/{chapter}"
    return audit if (root / "notebooks" / f"{audit}.md").is_file() else chapter


def quoted(text: str, known: Mapping[str, Mapping[str, Any]]) -> tuple[str, Mapping[str, Any]]:
    """The number that ``{measured}`` asks for with ``text``, and its entry; ``known`` is as ``by_id`` has it.

    Raises ``ValueError`` if there is no such claim, it was not measured, or the number cannot be written in that form.
    """
    match = QUOTED.fullmatch(text)
    if match is None:
        raise ValueError(f"expected ID, ID:FORMAT or ID rival:FORMAT, got {text!r}")
    id, what, form = match["id"], match["what"] or "measured", match["format"]
    if id not in known:
        raise ValueError(f"{id}: no such claim")
    entry = known[id]
    value = entry[what]["value"] if what in ("rival", "control") and entry[what] else entry[what]
    if entry["measured"] is None or value is None:
        raise ValueError(f"{id}: this build has no {what} value of it, or one that diverges")
    if isinstance(value, bool) or form is None:
        return format_value(value), entry
    try:
        return format(value, form), entry
    except ValueError as error:
        raise ValueError(f"{id}: {form!r} is no format of the number {value}") from error


def _by_chapter(root: Path, chapters: Sequence[str] | None = None) -> dict[str, list[Claim]]:
    """The claims of every chapter, in the order of the book."""
    declared = {path.stem: path for path in read.files(root)}
    if chapters is None:
        chapters = [*(pages.chapters(root) if (root / "_toc.yml").is_file() else ()), *declared]
    return {name: read.declared(declared[name]) for name in chapters if name in declared}


def _entry(
    claim: Claim, measurement: Measurement | None, judgement: Judgement, works: Mapping[str, Mapping[str, str]]
) -> Entry:
    key = claim.source.get("key")
    work = works.get(key or "", {})
    is_corrected = claim.verdict == "corrected"
    control = measurement and (measurement.rival if measurement.control is None else measurement.control)
    ours = claim.is_measured and not is_corrected and not {"printed", "accuracy"} & set(claim.expects)
    return {
        "id": claim.id,
        "chapter": claim.chapter,
        "page": "",
        "says": spaced(claim.says),
        "kind": claim.kind,
        "verdict": claim.verdict,
        "holds": judgement.holds,
        "reason": judgement.reason,
        "because": spaced(claim.because) or None,
        "source": {"key": key, "where": claim.source.get("where"), "version": work.get("version")},
        "quote": spaced(claim.source.get("quote", "")) or None,
        "state": claim.source.get("state", "standing") if claim.source else None,
        "superseded": work.get("superseded"),
        "external": key is not None and work.get("keywords") != "source",
        "equation": list(claim.equation),
        "functions": list(claim.functions),
        "published": claim.expects.get("printed"),
        "corrected": claim.expects.get("value") if is_corrected else None,
        "expects": dict(expected(claim)) if ours else None,
        "measured": measurement.value if measurement else None,
        "uncertainty": measurement.uncertainty if measurement else None,
        "gap": judgement.gap,
        "bound": judgement.bound,
        "z": judgement.z,
        "declared": allowed(claim) if claim.is_measured else None,
        "k": factor(claim) if claim.is_measured else None,
        "rival": _other(claim.rival, measurement and measurement.rival, judgement.rival_gap, judgement.rival_bound),
        "control": _other(claim.found["control"], control, judgement.control_gap, judgement.control_bound)
        if claim.found
        else None,
        "found": {"value": claim.found["value"], "bound": claim.found.get("within")} if claim.found else None,
        "printed_tex": claim.tex.get("printed"),
        "corrected_tex": claim.tex.get("corrected"),
        "parts": list(claim.parts),
        "was": list(claim.was),
        "commit": claim.source.get("commit"),
        "seconds": None,
    }


def _other(says: str, given: Any, gap: float | None, bound: float | None) -> dict[str, Any] | None:
    """A rival or a control: what it is, its numbers, and how far it is from what is right."""
    if not says and given is None:
        return None
    value, uncertainty = given if isinstance(given, tuple) else (given, None)
    diverges = value is not None and not math.isfinite(value)
    return {
        "says": spaced(says) or None,
        # JSON has no word for what diverges.
        "value": None if diverges else value,
        "uncertainty": uncertainty if uncertainty is not None and math.isfinite(uncertainty) else None,
        "diverges": diverges,
        "gap": gap,
        "bound": bound,
    }


def _join_parts(entries: Sequence[Entry]) -> None:
    """A whole that is only partly right holds if the verdicts on all its parts do that are decided."""
    known = {entry["id"]: entry for entry in entries}
    for entry in entries:
        failed = [part for part in entry["parts"] if known[part]["holds"] is False]
        if entry["parts"]:
            entry["holds"], entry["reason"] = not failed, ", ".join(f"{part} does not hold" for part in failed)


def _seconds(folder: Path) -> dict[str, float]:
    """The seconds of the cell that made each measurement of a page."""
    seconds: dict[str, float] = {}
    for path in folder.glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for output in cell.get("outputs", ()):
                if id := output.get("metadata", {}).get("companion", {}).get("claim"):
                    seconds[id] = round(float(cell["metadata"].get("papermill", {}).get("duration") or 0.0), 3)
    return seconds
