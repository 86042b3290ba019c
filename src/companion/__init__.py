"""A book that checks its claims: the machinery of a companion to published work. It computes no results.

A chapter calls ``claims``, ``figures`` and ``numbers``. The rooms follow one another as the data do: ``declaring``,
``running``, ``site``; ``evidence`` asks what they would notice. ``check`` and ``build`` join them, and ``project`` is
what the machinery knows of the book. Importing it loads no submodule.
"""

from __future__ import annotations
