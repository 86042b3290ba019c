"""Says in words how an entry of a list in YAML differs from what it should be, by the schemas of ``shapes.yml``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft7Validator

_LONGEST = 200
"""Characters of a message, which shows what stands in the file."""


def problems(kind: str, entry: Any) -> list[str]:
    """Everything that is wrong with the form of an entry, as "FIELD: what"; [] where it has that of its ``kind``.

    A schema may have words of its own for what is expected, ``says``.
    """
    found = []
    for error in _validators()[kind].iter_errors(entry):
        place = ".".join(map(str, error.absolute_path))
        says = error.schema.get("says") if isinstance(error.schema, Mapping) else None
        message = f"expected {says}, got {error.instance!r}" if says else error.message
        found.append(f"{place}: {message}"[:_LONGEST] if place else message[:_LONGEST])
    return sorted(found)


@cache
def _validators() -> Mapping[str, Draft7Validator]:
    # Above this folder, whose files belong to what a page imports.
    path = Path(__file__).parents[1] / "shapes.yml"
    short = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {kind: Draft7Validator(whole(schema)) for kind, schema in short.items()}


def whole(short: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with what goes without saying: an object has all its properties but the optional ones, and no others."""
    full = {word: whole(said) if word in ("items", "additionalProperties") else said for word, said in short.items()}
    if "properties" not in short:
        return full
    optional = full.pop("optional", [])
    properties = {name: whole(said) for name, said in short["properties"].items()}
    required = [name for name in properties if name not in optional]
    return {"type": "object"} | full | {"properties": properties, "required": required, "additionalProperties": False}
