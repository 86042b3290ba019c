"""A book that checks its claims: the machinery of a companion to published work. It computes no results.

A chapter calls ``claims``, ``figures`` and ``numbers``; ``pipeline`` runs the chapters and makes the site; ``project``
is what the machinery knows of the book. Importing it loads no submodule.
"""

from __future__ import annotations

__all__: list[str] = []
