"""Freezes the ledgers of releases, and tells what has changed since: which claims, how, and why.

``book/releases/VERSION.json`` holds the ledger of a release. ``book/releases/reasons.yml`` says of every claim whose
verdict, expectation or value has changed since the last of them why it did. A verdict or an expectation that changed
without a reason fails the build, wherever it runs. A value may be another machine's: the page shows that it moved, and
only the next release asks why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from packaging.version import Version

from companion import claims, manuscript, project
from companion.running import disk
from companion.site import catalogue, directives

_FOLDER = "book/releases"
_REASONS = "reasons.yml"
_KEPT = (
    "id",
    "was",
    "says",
    "verdict",
    "published",
    "corrected",
    "expects",
    "found",
    "measured",
    "uncertainty",
    "bound",
)
_COMPARED = ("published", "corrected", "expects")
_RENAMED = {"established": claims.OWN_VERDICTS}
"""Words of older ledgers, and the finer ones that took their place, which is no other verdict."""


@dataclass(frozen=True)
class Change:
    """What became of a claim: ``kind`` is new, retired, gone, verdict, expectation or value; ``why`` may be missing."""

    id: str
    kind: str
    before: str
    after: str
    why: str | None = None

    @property
    def needs_reason(self) -> bool:
        """A new claim is explained by its own words, a retired one by the reason that its declaration gives."""
        return self.kind not in ("new", "retired")


def frozen(root: Path) -> list[dict[str, Any]]:
    """The ledgers of all releases, the oldest first: ``version``, ``commit``, ``claims``, ``retired``, ``reasons``."""
    ledgers = []
    for path in manuscript.listed(root / _FOLDER, "*.json"):
        ledger = manuscript.data(path)
        if not isinstance(ledger, dict) or not {"version", "claims", "retired"} <= set(ledger):
            raise manuscript.Unreadable(path, 0, "expected a ledger that `companion freeze` wrote")
        ledgers.append(ledger)
    return sorted(ledgers, key=lambda ledger: Version(ledger["version"]))


def freeze(root: Path, candidate: int = 0) -> Path:
    """Write the ledger of the finished site as that of its version; returns the file.

    With the number of a ``candidate`` the version may still be one of development: that of 1.0.0.dev0 becomes the
    ledger of 1.0.0rc1, which everything is compared with until 1.0.0 is frozen.

    Raises ``ValueError`` if there is no site, its version is one of development (or, of a candidate, is not), it was
    made from a tree with changes, a verdict is not confirmed, something has changed since the last ledger without a
    reason, or the version has a ledger already: what is frozen stays as it is.
    """
    if candidate < 0:
        raise ValueError(f"candidate: expected the number of a candidate, 1 or more, got {candidate}")
    site = root / "_build" / "html"
    if not (site / catalogue.INDEX).is_file():
        raise ValueError("the site: expected a finished one in _build/html, got none; `make book` makes it")
    index, status, entries = (
        json.loads((site / name).read_text(encoding="utf-8"))
        for name in (catalogue.INDEX, "status.json", "claims.json")
    )
    version = index["version"]
    if (".dev" in version) != bool(candidate):
        advice = "one of development for a candidate" if candidate else "that of a release; take .dev from it first"
        raise ValueError(f"version: expected {advice}, got {version}")
    if candidate:
        version = f"{Version(version).base_version}rc{candidate}"
    if index["dirty"]:
        raise ValueError("the site: expected one that was made from a commit, got one with uncommitted changes")
    if failed := [entry["id"] for entry in entries if entry["holds"] is False]:
        raise ValueError(f"claims: expected all to be confirmed, got {len(failed)} that are not, the first {failed[0]}")
    if unexplained := problems(root, entries, status["retired"], values=True):
        raise ValueError(f"reasons: {len(unexplained)} missing or without a change, the first: {unexplained[0]}")
    path = root / _FOLDER / f"{version}.json"
    if path.exists():
        raise ValueError(f"version: expected one without a frozen ledger, got {version}, whose ledger is {path.name}")
    kept = {
        "version": version,
        "commit": index["commit"],
        "claims": [{name: entry[name] for name in _KEPT} for entry in entries],
        "retired": [entry["id"] for entry in status["retired"]],
        # Why it differs from the ledger before, for readers of later releases: the file of reasons begins anew.
        "reasons": {entry["id"]: entry["reason"] for entry in status["retired"]} | reasons(root),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    disk.write(path, json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    return path


def reasons(root: Path) -> dict[str, str]:
    """Why claims have changed since the last release, by their ids."""
    found = manuscript.mapping(path := root / _FOLDER / _REASONS, "ids of claims with a sentence each")
    if strange := [id for id, why in found.items() if not isinstance(why, str)]:
        raise manuscript.Unreadable(path, 0, f"{strange[0]}: expected a sentence, got {found[strange[0]]!r}")
    return {id: " ".join(why.split()) for id, why in found.items()}


def changes(
    before: Mapping[str, Any],
    entries: Sequence[Mapping[str, Any]],
    retired: Sequence[Mapping[str, Any]],
    reasons: Mapping[str, str],
) -> list[Change]:
    """From a frozen ledger to the entries of a build, in the order of the ids.

    A value has changed if it moved by more than either ledger lets it move: by its bound, and, where it has to stay on
    one side of an end, by its distance from there. Below that it may be rounding, another processor, or other random
    numbers. A claim that was renamed (``was``) is the same claim.
    """
    now, gone = catalogue.by_id(entries), catalogue.by_id(retired)
    known = {claim["id"]: claim for claim in before["claims"]}
    found = []
    for id, old in known.items():
        if id in gone:
            found.append(Change(id, "retired", old["verdict"], "retired", gone[id]["reason"]))
        elif id not in now:
            found.append(Change(id, "gone", old["verdict"], "", reasons.get(id)))
        else:
            found += _differences(id, old, now[id], reasons.get(id))
    listed = {*known, *before["retired"]}
    found += [
        Change(entry["id"], "new", "", entry["verdict"])
        for entry in entries
        if not listed.intersection((entry["id"], *entry["was"]))
    ]
    return sorted(found, key=lambda change: (change.id, change.kind))


def between(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """From one frozen ledger to the next, with the reasons that were frozen with it."""
    why = new.get("reasons", {})
    gone = [{"id": id, "was": [], "reason": why.get(id, "")} for id in new["retired"]]
    return changes(old, [{"was": [], **claim} for claim in new["claims"]], gone, why)


def _differences(id: str, old: Mapping[str, Any], new: Mapping[str, Any], why: str | None) -> list[Change]:
    found = []
    if new["verdict"] not in (old["verdict"], *_RENAMED.get(old["verdict"], ())):
        found.append(Change(id, "verdict", old["verdict"], new["verdict"], why))
    if any(_asked(old[name]) != _asked(new[name]) for name in _COMPARED):
        found.append(Change(id, "expectation", _compared_with(old), _compared_with(new), why))
    a, b = old["measured"], new["measured"]
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    if numbers and abs(a - b) > max(_bound(old), _bound(new)) + _distance(old):
        found.append(Change(id, "value", f"{a:.6g}", f"{b:.6g}", why))
    return found


def _bound(entry: Mapping[str, Any]) -> float:
    return max(float(one or 0.0) for one in (entry["bound"], (entry["found"] or {}).get("bound")))


def _distance(entry: Mapping[str, Any]) -> float:
    """From the value to the nearest end that it has to stay on one side of; 0 where it is compared with a value."""
    wanted = entry["expects"]
    if entry["found"] is not None or not isinstance(wanted, Mapping) or isinstance(entry["measured"], bool):
        return 0.0
    ends = [*wanted.get("between", ()), *(wanted[side] for side in ("above", "below") if side in wanted)]
    return min((abs(float(entry["measured"]) - float(end)) for end in ends), default=0.0)


def _asked(expected: Any) -> Any:
    """An expectation without the words that explain it, which may be improved."""
    return {k: v for k, v in expected.items() if k != "why"} if isinstance(expected, Mapping) else expected


def _compared_with(entry: Mapping[str, Any]) -> str:
    printed = [
        f"{name} {claims.format_value(entry[name])}" for name in ("published", "corrected") if entry[name] is not None
    ]
    wanted = [f"expected {claims.expectation_of(entry['expects'])}"] if entry["expects"] else []
    return ", ".join([*printed, *wanted]) or "nothing"


def problems(
    root: Path, entries: Sequence[Mapping[str, Any]], retired: Sequence[Mapping[str, Any]], *, values: bool = False
) -> list[str]:
    """One line for every change since the last release that has no reason, and for every reason without a change.

    A value that moved counts only with ``values``, as for the next release, and then a reason has to have a change;
    before, it may be a reason for what moves on another machine.
    """
    ledgers, given = frozen(root), reasons(root)
    if not ledgers:
        return [f"claim {id}: {_FOLDER}/{_REASONS} explains a change, but no release has been frozen" for id in given]
    found = changes(ledgers[-1], entries, retired, given)
    version, listed = ledgers[-1]["version"], {claim["id"] for claim in ledgers[-1]["claims"]}
    return [
        f"claim {change.id}: its {change.kind} changed since release {version} ({change.before} -> {change.after}); "
        f"say why in {_FOLDER}/{_REASONS}"
        for change in found
        if change.needs_reason and not change.why and (values or change.kind != "value")
    ] + [
        f"claim {id}: {_FOLDER}/{_REASONS} explains a change since release {version}, but there is none"
        for id in sorted(set(given) - {change.id for change in found if change.needs_reason})
        if values or id not in listed
    ]


_WORDS = {
    "new": "new",
    "retired": "retired",
    "gone": "gone",
    "verdict": "verdict",
    "expectation": "compared with",
    "value": "value",
}


class LedgerChanges(directives.Directive):
    """``{ledger-changes}``: the releases, and what has changed in the ledger since the last one and between them."""

    def run(self) -> list[nodes.Node]:
        ledgers, version = frozen(self.root), project.identity(self.root).version
        sections = []
        if ledgers:
            entries, retired = self.read("claims.json"), self.read("status.json")["retired"]
            latest = changes(ledgers[-1], entries, retired, reasons(self.root))
            sections.append((f"Since {ledgers[-1]['version']}", latest))
        for old, new in zip(ledgers[-2::-1], ledgers[:0:-1], strict=True):
            sections.append((f"From {old['version']} to {new['version']}", between(old, new)))
        return [self.filled("releases.changes", sections=sections, words=_WORDS, version=version)]
