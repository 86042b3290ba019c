"""The claims ledger: what was declared beside what was measured. Nothing is measured here."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from companion import claims, project
from companion.pipeline import disk


@dataclass(frozen=True)
class Ledger:
    """`entries` as `_build/claims.json` holds them, and every reason why the run must fail."""

    entries: list[dict[str, Any]]
    problems: list[str]


def collect(root: Path, chapters: Sequence[str], results: Mapping[str, Path]) -> Ledger:
    """Judge the declared claims of `chapters` by the measurements in the folders of `results`.

    A chapter without a result has measured nothing: its claims do not hold.
    """
    entries: list[dict[str, Any]] = []
    problems: list[str] = []
    known_sources = project.sources(root)
    known_works = project.references(root)
    for chapter in chapters:
        path = root / "book" / "claims" / f"{chapter}.yml"
        declared = claims.declared(path) if path.is_file() else []
        measured, seconds, repeated = _measured(results[chapter], chapter) if chapter in results else ({}, {}, [])
        problems += [f"claim {id}: measured more than once" for id in repeated]
        problems += [
            f"claim {id}: measured but not declared in book/claims/{chapter}.yml"
            for id in sorted(set(measured) - {claim.id for claim in declared})
        ]
        for claim in declared:
            if claim.source["key"] not in known_works:
                problems.append(f"claim {claim.id}: source key {claim.source['key']!r} is not in references.bib")
            measurement = measured.get(claim.id)
            if claim.verdict == "not-attempted" and measurement is not None:
                problems.append(f"claim {claim.id}: declared not attempted, but measured")
            judgement = claims.judge(claim, measurement)
            if judgement.holds is False:
                problems.append(f"claim {claim.id}: {judgement.reason}")
            entries.append(
                {
                    "id": claim.id,
                    "chapter": chapter,
                    "says": " ".join(claim.says.split()),
                    "source": dict(claim.source),
                    "external": claim.source["key"] not in known_sources,
                    "published": claim.published,
                    "corrected": claim.corrected,
                    "measured": measurement.value if measurement and claim.verdict != "not-attempted" else None,
                    "uncertainty": measurement.uncertainty if measurement else None,
                    "bound": judgement.bound,
                    "rule": " ".join(claim.bound["why"].split()) if claim.bound else None,
                    "gap": judgement.gap,
                    "verdict": claim.verdict,
                    "holds": judgement.holds,
                    "because": " ".join(claim.because.split()) if claim.because else None,
                    "seconds": seconds.get(claim.id),
                }
            )
    return Ledger(entries, problems)


def _measured(folder: Path, chapter: str) -> tuple[dict[str, claims.Measurement], dict[str, float], list[str]]:
    """Measurements by claim, the seconds of the cell that made each, and the claims measured more than once."""
    record = folder / "measured.jsonl"
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()] if record.is_file() else []
    measured = {line["id"]: claims.Measurement(line["value"], line["uncertainty"]) for line in lines}
    repeated = sorted({line["id"] for line in lines if sum(other["id"] == line["id"] for other in lines) > 1})
    seconds: dict[str, float] = {}
    notebook = nbformat.read(folder / f"{chapter}.ipynb", as_version=4)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if id := output.get("metadata", {}).get("companion", {}).get("claim"):
                seconds[id] = round(float(cell.metadata.get("papermill", {}).get("duration") or 0.0), 3)
    return measured, seconds, repeated


def write(path: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write `claims.json`."""
    disk.write(path, json.dumps(list(entries), indent=1, ensure_ascii=False) + "\n")
