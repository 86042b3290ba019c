"""The live models of the lessons: a module each, with the numbers that its script starts from and its still picture."""

from __future__ import annotations

__all__: list[str] = []
