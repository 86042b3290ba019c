"""The chapter on comparisons: its figures, and those of the stacks."""

from __future__ import annotations

__all__: list[str] = []
