"""The chapter on spin transformers: the runs and the printed arrays of its source, and the infinite system."""

from __future__ import annotations

__all__: list[str] = []
