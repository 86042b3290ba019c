"""The chapter on attention dynamics: two drawings, and numbers that the authors store."""

from __future__ import annotations

__all__: list[str] = []
