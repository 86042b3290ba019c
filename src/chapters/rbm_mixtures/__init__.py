"""The chapter on RBMs and mixtures: its figures, attention by random features, and machines of several layers."""

from __future__ import annotations

__all__: list[str] = []
