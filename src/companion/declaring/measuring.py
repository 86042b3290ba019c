"""Records what a page measures. In a kernel of the pipeline it sees no declaration, and shows the numbers alone."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from IPython.display import display

from companion import project
from companion.declaring.declaration import Value, declared
from companion.declaring.judgement import Measurement
from companion.declaring.words import line, plain

RECORD = "measured.jsonl"
"""Where a run of the pipeline notes what was measured, a line a claim."""


def measure(id: str, value: Any, *, uncertainty: Any = 0.0, rival: Any = None, control: Any = None) -> None:
    """Record ``value`` for the claim ``id`` and show it; outside the pipeline with what was declared.

    - ``id``: CHAPTER.NAME, as declared in ``book/claims/CHAPTER.yml``.
    - ``value``: a finite number or a boolean (an array is claimed through its maximal deviation from the published
      one).
    - ``uncertainty``: one standard error of ``value``, or a bound on its numerical error; same unit.
    - ``rival``: what the declared wrong answer gives through the same code, as a value or ``(value, uncertainty)``; it
      may be nan or infinite, since a rival that diverges has failed.
    - ``control``: for a claim that is not reproduced: what the same code gives where the statement is true, in the same
      form.

    Raises ``ValueError`` if ``value`` is not a finite number or a boolean, or an uncertainty is not a finite number >=
    0.
    """
    measurement = Measurement(
        _scalar("value", id, value),
        _uncertainty("uncertainty", id, uncertainty),
        _other("rival", id, rival),
        _other("control", id, control),
    )
    if folder := os.environ.get("COMPANION_OUT"):
        with (Path(folder) / RECORD).open("a", encoding="utf-8") as record:
            record.write(json.dumps(_noted(id, measurement)) + "\n")
        shown = {"text/plain": f"Claim {id}: {plain(measurement)}"}
    else:
        path = project.root() / "book" / "claims" / f"{id.partition('.')[0]}.yml"
        known = {claim.id: claim for claim in declared(path)} if path.is_file() else {}
        ledger = f"{project.identity().site}book/claims.html"
        markup, text = line(id, known.get(id), measurement, ledger)
        shown = {"text/html": markup, "text/plain": text}
    display(shown, metadata={"companion": {"claim": id}}, raw=True)


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


def _noted(id: str, measurement: Measurement) -> dict[str, Any]:
    noted: dict[str, Any] = {"id": id, "value": measurement.value, "uncertainty": measurement.uncertainty}
    for name in ("rival", "control"):
        if (other := getattr(measurement, name)) is not None:
            noted[name] = list(other)
    return noted


def _other(name: str, id: str, given: Any) -> tuple[Value, float] | None:
    """A rival or a control, as a value with its uncertainty."""
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
