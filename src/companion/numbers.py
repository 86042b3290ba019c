"""Passes numbers that a chapter computes to its own prose."""

from __future__ import annotations

from typing import Any

from IPython.display import display


def glue(key: str, value: Any) -> None:
    """Store ``value`` under ``key``, so that the text can say {glue:text}`key:.3f` and never goes out of date.

    The output bundle is the one that MyST-NB reads; nothing is shown in the cell itself, and nothing but IPython is
    needed, so the cell also runs where the book is not installed.
    """
    if not key or any(character.isspace() for character in key):
        raise ValueError(f"key: expected a name without spaces, got {key!r}")
    plain = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
    prefix = "application/papermill.record/"
    text = plain if isinstance(plain, str) else repr(plain)
    display({f"{prefix}text/plain": text}, metadata={"scrapbook": {"name": key, "mime_prefix": prefix}}, raw=True)
