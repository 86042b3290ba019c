"""One module per chapter, one function per figure. Nothing here computes a result.

``style`` holds the sizes, fonts and palettes of the whole book.
"""

from __future__ import annotations

__all__ = [
    "adaptive_tap",
    "attention_dynamics",
    "collectives",
    "comparison",
    "entropy_production",
    "free_energy",
    "kinetic_ising",
    "rbm_mixtures",
    "spin_transformers",
    "style",
]
