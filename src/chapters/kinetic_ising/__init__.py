"""The chapter on kinetic Ising models: the random numbers of its source."""

from __future__ import annotations

__all__: list[str] = []
