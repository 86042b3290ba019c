"""Kinetic Ising models: binary spins, all updated at once, with couplings of any symmetry."""

from __future__ import annotations

__all__: list[str] = []
