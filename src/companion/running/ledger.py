"""Makes the claims ledger: what was declared beside what was measured, with the verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat

from companion import claims, project
from companion.declaring import notebooks, texts
from companion.running import execution

_DECLARED = (
    *("id", "chapter", "kind", "verdict", "published", "corrected", "resolves"),
    *("printed_tex", "corrected_tex", "run_by"),
)
"""What an entry has of the declaration as it stands there."""


Entries = list[dict[str, Any]]
"""As ``_build/claims.json`` holds them."""


def collect(root: Path, chapters: Sequence[str], results: Mapping[str, Path]) -> tuple[Entries, Entries, list[str]]:
    """Judge the declared claims of ``chapters`` by the measurements in the folders of ``results``, one a page.

    Returns the entries of all claims, what was retired, and every reason why the run must fail. A page without a
    result has measured nothing: its claims do not hold.
    """
    entries: Entries = []
    retired: Entries = []
    problems: list[str] = []
    known_sources = project.sources(root)
    known_texts = texts.read(root)
    for chapter in chapters:
        path = root / "book" / "claims" / f"{chapter}.yml"
        declared = claims.declared(path) if path.is_file() else []
        pages = [page for page in (chapter, f"{notebooks.AUDITS}/{chapter}") if page in results]
        seconds = {id: spent for page in pages for id, spent in _seconds(results[page], page).items()}
        measured: dict[str, list[tuple[str, claims.Measurement]]] = {}
        for page in pages:
            for id, value in claims.recorded(results[page]):
                measured.setdefault(id, []).append((page, value))
        problems += [
            f"claim {id}: measured more than once, on {' and '.join(dict.fromkeys(page for page, _ in places))}"
            for id, places in sorted(measured.items())
            if len(places) > 1
        ]
        problems += [
            f"claim {id}: measured but not declared in book/claims/{chapter}.yml"
            for id in sorted(measured.keys() - {claim.id for claim in declared})
        ]
        # What nobody measures is spoken of in the audit, where there is one.
        elsewhere = (root / "notebooks" / notebooks.AUDITS / f"{chapter}.md").is_file()
        home = f"{notebooks.AUDITS}/{chapter}" if elsewhere else chapter
        own_entries = []
        for claim in declared:
            page, measurement = measured[claim.id][-1] if claim.id in measured else (home, None)
            if claim.retired:
                retired.append(_retired(claim, home))
                if measurement is not None:
                    problems.append(f"claim {claim.id}: retired, but measured")
                continue
            key = claim.source.get("key")
            if not claim.is_measured and measurement is not None:
                problems.append(f"claim {claim.id}: declared {claim.verdict.replace('-', ' ')}, but measured")
            judgement = claims.judge(claim, measurement)
            if judgement.holds is False:
                problems.append(f"claim {claim.id}: {judgement.reason}")
            entry = _entry(claim, measurement if claim.is_measured else None, judgement)
            entry["page"] = page
            entry["external"] = key is not None and key not in known_sources
            entry["seconds"] = seconds.get(claim.id)
            if key in known_texts:
                entry["source"]["version"] = known_texts[key].version
            own_entries.append(entry)
        _join_parts(own_entries)
        entries += own_entries
    return entries, retired, problems


def _entry(claim: claims.Claim, measurement: claims.Measurement | None, judgement: claims.Judgement) -> dict[str, Any]:
    control = measurement and (measurement.rival if measurement.control is None else measurement.control)
    against = {
        "rival": (claim.rival, measurement and measurement.rival, judgement.rival_gap, judgement.rival_bound),
        "control": (claim.control, control, judgement.control_gap, judgement.control_bound),
    }
    return {
        **{name: getattr(claim, name) for name in _DECLARED},
        **{name: dict(said) if (said := getattr(claim, name)) else None for name in ("expects", "found")},
        **{name: list(getattr(claim, name)) for name in ("parts", "equation", "functions", "was")},
        **{name: _plain(getattr(claim, name) or "") or None for name in ("says", "quote", "because", "route")},
        **{name: getattr(judgement, name) for name in ("bound", "gap", "z", "holds")},
        "page": "",
        "source": {"key": None, "where": None, "section": None, "sha256": None, "version": None, **claim.source},
        "state": (claim.state or "standing") if claim.source else None,
        "external": False,
        "measured": measurement.value if measurement else None,
        "uncertainty": measurement.uncertainty if measurement else None,
        "rival": _other(*against["rival"]),
        "control": _other(*against["control"]) if claim.control else None,
        "declared": claims.allowed(claim) if claim.is_measured else None,
        "k": claims.factor(claim) if claim.is_measured else None,
        "rule": _plain(claim.bound["why"]) if claim.bound else None,
        "commit": str(claim.commit) if claim.commit is not None else None,
        "seconds": None,
    }


def _other(says: str | None, given: Any, gap: float | None, bound: float | None) -> dict[str, Any] | None:
    """A rival or a control: what it is, its numbers, and how far it is from what is right."""
    if says is None and given is None:
        return None
    value, uncertainty = given if isinstance(given, tuple) else (given, None)
    diverges = value is not None and not math.isfinite(value)
    return {
        "says": _plain(says) if says else None,
        # JSON has no word for what diverges.
        "value": None if diverges else value,
        "uncertainty": uncertainty if uncertainty is not None and math.isfinite(uncertainty) else None,
        "diverges": diverges,
        "gap": gap,
        "bound": bound,
    }


def _retired(claim: claims.Claim, page: str) -> dict[str, Any]:
    return {
        "id": claim.id,
        "chapter": claim.chapter,
        "page": page,
        "says": _plain(claim.says),
        "reason": _plain(claim.retired or ""),
        "was": list(claim.was),
    }


def _join_parts(entries: Sequence[dict[str, Any]]) -> None:
    """A whole that is only partly right is confirmed when the verdicts on all its parts are that are decided."""
    by_id = {entry["id"]: entry for entry in entries}
    for entry in entries:
        if entry["verdict"] == "partly":
            held = [by_id[part]["holds"] for part in entry["parts"] if part in by_id]
            entry["holds"] = all(one is not False for one in held)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _seconds(folder: Path, page: str) -> dict[str, float]:
    """The seconds of the cell that made each measurement of a page."""
    seconds: dict[str, float] = {}
    notebook = nbformat.read(execution.notebook_file(folder, page), as_version=4)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if id := output.get("metadata", {}).get("companion", {}).get("claim"):
                seconds[id] = round(float(cell.metadata.get("papermill", {}).get("duration") or 0.0), 3)
    return seconds
