"""The chapter that gives the overview: its figures, and responses of spins whose couplings depend on the fields."""

from __future__ import annotations

__all__: list[str] = []
