"""The chapter on spin transformers: its figures, and the arrays that its source prints."""

from __future__ import annotations

__all__: list[str] = []
