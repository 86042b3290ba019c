"""What the sources say, what a chapter measured, and whether the two agree. Nothing here computes results.

`book/claims/CHAPTER.yml` declares a claim with its published value; a chapter calls `measure`; `judge` compares. The
declaration never enters a measurement, and a measurement never changes a declaration.
"""

import html
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from IPython.display import display

from companion import project

VERDICTS = ("reproduced", "corrected", "not-reproduced", "not-attempted")
_FIELDS = {"id", "says", "source", "published", "corrected", "reading_error", "bound", "verdict", "because", "unit"}

Value = float | int | bool


@dataclass(frozen=True)
class Claim:
    """One statement of a source, as declared in `book/claims/CHAPTER.yml`."""

    id: str
    says: str
    source: Mapping[str, str]
    verdict: str
    published: Value | None = None
    corrected: Value | None = None
    reading_error: float = 0.0
    bound: Mapping[str, Any] | None = None
    because: str | None = None
    unit: str = ""

    @property
    def chapter(self) -> str:
        """The chapter that measures the claim."""
        return self.id.partition(".")[0]


@dataclass(frozen=True)
class Measurement:
    """What a chapter found: `value` with one standard error (or one bound on the numerical error) `uncertainty`."""

    value: Value
    uncertainty: float = 0.0


@dataclass(frozen=True)
class Judgement:
    """The comparison: `gap` to the published value, the `bound` on it, and whether the declared verdict `holds`."""

    gap: float | None
    bound: float | None
    holds: bool | None
    reason: str = field(default="")


def declared(path: Path) -> list[Claim]:
    """Read and check one file of claims.

    Raises
    ------
    ValueError
        naming the file, the claim and the field, for anything that `judge` could not decide on.
    """
    entries = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    claims = [_claim(path, entry) for entry in entries]
    ids = [claim.id for claim in claims]
    if repeated := sorted({id_ for id_ in ids if ids.count(id_) > 1}):
        raise ValueError(f"{path.name}: claims declared more than once: {', '.join(repeated)}")
    return claims


def _claim(path: Path, entry: Mapping[str, Any]) -> Claim:
    where = f"{path.name}, {entry.get('id', 'a claim without id')}"
    if unknown := set(entry) - _FIELDS:
        raise ValueError(f"{where}: unknown fields {sorted(unknown)}; expected some of {sorted(_FIELDS)}")
    if missing := {"id", "says", "source", "verdict"} - set(entry):
        raise ValueError(f"{where}: missing fields {sorted(missing)}")
    if not str(entry["id"]).startswith(f"{path.stem}."):
        raise ValueError(f"{where}: id: expected it to begin with '{path.stem}.'")
    if entry["verdict"] not in VERDICTS:
        raise ValueError(f"{where}: verdict: expected one of {VERDICTS}, got {entry['verdict']!r}")
    if set(entry["source"]) != {"key", "where"}:
        raise ValueError(f"{where}: source: expected the fields key and where, got {sorted(entry['source'])}")
    claim = Claim(**entry)
    if claim.verdict != "reproduced" and not claim.because:
        raise ValueError(f"{where}: because: required for the verdict {claim.verdict!r}")
    if claim.verdict != "not-attempted" and not isinstance(claim.published, int | float):
        raise ValueError(f"{where}: published: expected a number or a boolean, got {claim.published!r}")
    if (claim.verdict == "corrected") != (claim.corrected is not None):
        raise ValueError(f"{where}: corrected: a value is required for the verdict corrected, and only there")
    if claim.reading_error < 0 or not math.isfinite(claim.reading_error):
        raise ValueError(f"{where}: reading_error: expected a number >= 0, got {claim.reading_error!r}")
    if claim.bound is not None and (
        set(claim.bound) not in ({"absolute", "why"}, {"relative", "why"}) or not str(claim.bound["why"]).strip()
    ):
        raise ValueError(f"{where}: bound: expected {{absolute or relative: NUMBER, why: TEXT}}, got {claim.bound!r}")
    return claim


def judge(claim: Claim, measurement: Measurement | None) -> Judgement:
    """gap = |measured - published| against bound = reading_error + 3 uncertainty.

    A claim's own rule, `bound: {absolute: A, why: ...}` or `{relative: R, why: ...}`, replaces `reading_error` by A or
    by R |published|. `holds` says that the declared verdict is confirmed: reproduced, gap <= bound; not-reproduced,
    gap > bound; corrected, gap > bound and |measured - corrected| <= bound (for booleans: equal, or not).
    """
    if claim.verdict == "not-attempted":
        return Judgement(None, None, None)
    if measurement is None:
        return Judgement(None, None, False, "declared but never measured")
    assert claim.published is not None
    bound = _allowance(claim) + 3.0 * measurement.uncertainty
    gap = abs(float(measurement.value) - float(claim.published))
    if isinstance(measurement.value, bool) != isinstance(claim.published, bool):
        kinds = f"{type(measurement.value).__name__} measured, {type(claim.published).__name__} published"
        return Judgement(gap, bound, False, f"a boolean cannot be compared with a number: {kinds}")
    if claim.verdict == "reproduced":
        reason = "" if gap <= bound else f"gap {gap:.3g} exceeds the bound {bound:.3g}"
    elif claim.verdict == "not-reproduced":
        reason = (
            "" if gap > bound else f"declared not reproduced, but the gap {gap:.3g} is within the bound {bound:.3g}"
        )
    else:
        assert claim.corrected is not None
        residue = abs(float(measurement.value) - float(claim.corrected))
        if residue > bound:
            reason = f"distance {residue:.3g} to the corrected value exceeds the bound {bound:.3g}"
        else:
            reason = "" if gap > bound else f"the published value passes too: gap {gap:.3g}, bound {bound:.3g}"
    return Judgement(gap, bound, not reason, reason)


def _allowance(claim: Claim) -> float:
    if claim.bound is None:
        return claim.reading_error
    if "absolute" in claim.bound:
        return float(claim.bound["absolute"])
    return float(claim.bound["relative"]) * abs(float(claim.published or 0.0))


def measure(id: str, value: Any, *, uncertainty: Any = 0.0) -> None:
    """Record `value` for the claim `id` and show the comparison as one line.

    Parameters
    ----------
    id
        CHAPTER.NAME, as declared in `book/claims/CHAPTER.yml`.
    value
        a finite number or a boolean (an array is claimed through its maximal deviation from the published one).
    uncertainty
        one standard error of `value`, or a bound on its numerical error; same unit.

    Raises
    ------
    ValueError
        if `value` is not a finite number or a boolean, or `uncertainty` is not a finite number >= 0.
    """
    measurement = Measurement(_scalar("value", id, value), float(_scalar("uncertainty", id, uncertainty)))
    if measurement.uncertainty < 0:
        raise ValueError(f"uncertainty of {id}: expected a number >= 0, got {measurement.uncertainty}")
    if folder := os.environ.get("COMPANION_OUT"):
        with (Path(folder) / "measured.jsonl").open("a", encoding="utf-8") as record:
            line = {"id": id, "value": measurement.value, "uncertainty": measurement.uncertainty}
            record.write(json.dumps(line) + "\n")
    path = project.root() / "book" / "claims" / f"{id.partition('.')[0]}.yml"
    known = {claim.id: claim for claim in declared(path)} if path.is_file() else {}
    _show(id, known.get(id), measurement)


def _scalar(name: str, id: str, value: Any) -> Value:
    if getattr(value, "shape", ()) != ():
        raise ValueError(
            f"{name} of {id}: expected a number or a boolean, got an array of shape {value.shape}; "
            "claim an array through its maximal deviation"
        )
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, bool):
        return plain
    if not isinstance(plain, int | float) or not math.isfinite(plain):
        raise ValueError(f"{name} of {id}: expected a finite number or a boolean, got {plain!r}")
    return plain


def format_value(value: Value | None, digits: int = 6) -> str:
    """A value as readers see it: yes, no, or a number with `digits` significant digits."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.{digits}g}"


def _sentence(claim: Claim | None, measurement: Measurement) -> tuple[str, str]:
    """The state (for the style sheet) and the text of the line."""
    found = format_value(measurement.value)
    if measurement.uncertainty:
        found += f" ± {measurement.uncertainty:.1g}"
    if claim is None:
        return "undeclared", f"measured {found}; no such claim is declared."
    verdict = judge(claim, measurement)
    published = f"published {format_value(claim.published)}"
    if claim.corrected is not None:
        published += f", corrected {format_value(claim.corrected)}"
    comparison = "" if isinstance(claim.published, bool) else f", gap {verdict.gap:.2g}, bound {verdict.bound:.2g}"
    outcome = claim.verdict.replace("-", " ") if verdict.holds else f"not confirmed: {verdict.reason}"
    return (claim.verdict if verdict.holds else "failed"), f"measured {found}, {published}{comparison}: {outcome}."


def _show(id: str, claim: Claim | None, measurement: Measurement) -> None:
    state, sentence = _sentence(claim, measurement)
    says = claim.says.strip() if claim else ""
    ledger = "../book/claims.html" if os.environ.get("COMPANION_OUT") else f"{project.identity().site}book/claims.html"
    anchor = anchor_of(id)
    markup = (
        f'<div class="book-claim book-claim-{state}" id="{anchor}">'
        '<span class="book-claim-mark" aria-hidden="true"></span>'
        f'<a class="book-claim-id" href="{ledger}#ledger-{anchor}">{html.escape(id)}</a> '
        f'<span class="book-claim-says">{html.escape(says)}</span> '
        f'<span class="book-claim-result">{html.escape(sentence[0].upper() + sentence[1:])}</span></div>'
    )
    text = f"Claim {id}: {says} {sentence}"
    display({"text/html": markup, "text/plain": text}, metadata={"companion": {"claim": id}}, raw=True)


def anchor_of(id: str) -> str:
    """The HTML anchor of a claim."""
    return "claim-" + id.replace(".", "-")
