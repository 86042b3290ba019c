"""The chapter on kinetic Ising models: its figures, and the random numbers of its source."""

from __future__ import annotations

__all__: list[str] = []
