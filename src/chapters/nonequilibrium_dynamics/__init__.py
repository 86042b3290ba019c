"""The chapter on nonequilibrium dynamics: its figures, and numbers that the program of its source gave."""

from __future__ import annotations

__all__: list[str] = []
