"""Records what a page measures. In a kernel of the press it sees no declaration, and shows the numbers alone."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from companion import project
from companion.claims.judge import Measurement
from companion.claims.model import Value
from companion.claims.read import declared
from companion.claims.words import line, plain

RECORD = "measured.jsonl"
"""Where a run notes what was measured, a line a claim."""
_FIELDS = ("measured", "rival", "uncertainty", "rival_uncertainty", "control")


def measure(id: str, value: Any, *, uncertainty: Any = 0.0, rival: Any = None, control: Any = None) -> None:
    """Record ``value`` for the claim ``id`` and show it; outside of a run with what was declared.

    - ``id``: CHAPTER.NAME, as declared in ``book/claims/CHAPTER.yml``.
    - ``value``: a finite number or a boolean (an array is claimed through its maximal deviation from the right one).
    - ``uncertainty``: one standard error of ``value``, or a bound on its numerical error; same unit.
    - ``rival``: what the declared wrong answer gives through the same code, as a value or ``(value, uncertainty)``; it
      may be nan or infinite, since a rival that diverges has failed.
    - ``control``: for a claim that is not reproduced: what the same code gives where the statement is true, in the same
      form.

    Raises ``ValueError`` if ``value`` is not a finite number or a boolean, or an uncertainty is not a finite number >=
    0.
    """
    from IPython.display import display

    measurement = Measurement(value, uncertainty, rival, control)
    if folder := os.environ.get("COMPANION_OUT"):
        shown = {"text/plain": f"Claim {id}: {plain(note(Path(folder), id, measurement))}"}
    else:
        measurement = _checked(id, measurement)
        path = project.root() / "book" / "claims" / f"{id.partition('.')[0]}.yml"
        known = {claim.id: claim for claim in declared(path)} if path.is_file() else {}
        markup, text = line(id, known.get(id), measurement, f"{project.identity().site}book/claims.html")
        shown = {"text/html": markup, "text/plain": text}
    display(shown, metadata={"companion": {"claim": id}}, raw=True)


def of_cell(id: str, given: Any) -> Measurement:
    """The measurement that the last expression of a cell with ``:claim: ID`` is: a mapping of ``measured`` and others.

    The others are rival, uncertainty, rival_uncertainty and control. Raises ``ValueError`` as ``measure`` does.
    """
    if not isinstance(given, Mapping) or "measured" not in given or set(given) - set(_FIELDS):
        fields = sorted(map(str, given)) if isinstance(given, Mapping) else type(given).__name__
        raise ValueError(f"{id}: expected a mapping with measured and some of {', '.join(_FIELDS[1:])}, got {fields}")
    rival = given.get("rival")
    if "rival_uncertainty" in given:
        rival = (rival, given["rival_uncertainty"])
    return _checked(id, Measurement(given["measured"], given.get("uncertainty", 0.0), rival, given.get("control")))


def note(folder: Path, id: str, measurement: Measurement) -> Measurement:
    """Add a measurement to the record in ``folder``; returns it with plain numbers.

    Raises ``ValueError`` as ``measure`` does.
    """
    plain = _checked(id, measurement)
    noted: dict[str, Any] = {"id": id, "value": plain.value, "uncertainty": plain.uncertainty}
    for name in ("rival", "control"):
        if (other := getattr(plain, name)) is not None:
            noted[name] = list(other)
    with (folder / RECORD).open("a", encoding="utf-8") as record:
        record.write(json.dumps(noted) + "\n")
    return plain


def recorded(folder: Path) -> list[tuple[str, Measurement]]:
    """What a run in ``folder`` measured, in its order."""
    path = folder / RECORD
    noted = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []
    return [
        (
            one["id"],
            Measurement(
                one["value"],
                one["uncertainty"],
                *(tuple(one[name]) if name in one else None for name in ("rival", "control")),
            ),
        )
        for one in noted
    ]


def _checked(id: str, given: Measurement) -> Measurement:
    """The measurement with plain numbers in place of arrays and the like; rival and control with an uncertainty."""
    return Measurement(
        _scalar("value", id, given.value),
        _uncertainty("uncertainty", id, given.uncertainty),
        _other("rival", id, given.rival),
        _other("control", id, given.control),
    )


def _other(name: str, id: str, given: Any) -> tuple[Value, float] | None:
    if given is None:
        return None
    if isinstance(given, tuple | list):
        if len(given) != 2:
            raise ValueError(f"{name} of {id}: expected a value or (value, uncertainty), got {len(given)} values")
        return _scalar(name, id, given[0], finite=name != "rival"), _uncertainty(f"{name} uncertainty", id, given[1])
    return _scalar(name, id, given, finite=name != "rival"), 0.0


def _uncertainty(name: str, id: str, value: Any) -> float:
    uncertainty = float(_scalar(name, id, value))
    if uncertainty < 0:
        raise ValueError(f"{name} of {id}: expected a number >= 0, got {uncertainty}")
    return uncertainty


def _scalar(name: str, id: str, value: Any, *, finite: bool = True) -> Value:
    if getattr(value, "shape", ()) != ():
        raise ValueError(
            f"{name} of {id}: expected a number or a boolean, got an array of shape {value.shape}; "
            "claim an array through its maximal deviation"
        )
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, bool):
        return plain
    if not isinstance(plain, int | float) or (finite and not math.isfinite(plain)):
        raise ValueError(f"{name} of {id}: expected a finite number or a boolean, got {plain!r}")
    return plain
