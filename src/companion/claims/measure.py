"""Records what a page measures, without a look at what was declared."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from companion.claims.judge import Measurement
from companion.claims.model import Value

RECORD = "measured.jsonl"
"""Where a run notes what was measured, a line a claim."""
_FIELDS = ("measured", "rival", "uncertainty", "rival_uncertainty", "control")


def of_cell(id: str, given: Any) -> Measurement:
    """The measurement that the last expression of a cell with ``:claim: ID`` is: a mapping of ``measured`` and others.

    The others are rival, uncertainty, rival_uncertainty and control. Raises ``ValueError`` for
    another mapping, and as ``note`` does.
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

    Raises ``ValueError`` unless all values are numbers or booleans, finite but for the rival's, which has failed if it
    diverges; and unless uncertainties are >= 0. An array is claimed through its maximal deviation from the right one.
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
    found = []
    for one in noted:
        others = (tuple(one[name]) if name in one else None for name in ("rival", "control"))
        found.append((one["id"], Measurement(one["value"], one["uncertainty"], *others)))
    return found


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
    pair = given if isinstance(given, tuple | list) else (given, 0.0)
    if len(pair) != 2:
        raise ValueError(f"{name} of {id}: expected a value or (value, uncertainty), got {len(pair)} values")
    return _scalar(name, id, pair[0], finite=name != "rival"), _uncertainty(f"{name} uncertainty", id, pair[1])


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
