"""The chapter on attention dynamics: its figures, and all exponents of an orbit with a bound for each."""

from __future__ import annotations

__all__: list[str] = []
