"""Vector spins on spheres, all updated at once, with couplings of any symmetry."""

from __future__ import annotations

__all__: list[str] = []
