"""The chapter that gives the overview: the map of the lessons."""

from __future__ import annotations

__all__: list[str] = []
