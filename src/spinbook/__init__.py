"""Spin models and the attention of transformers: the library behind the book.

Each physical idea has a module of its own, which is loaded when it is imported. Extras of the package install what only
some modules need: ``torch``, ``notebook`` (matplotlib, scikit-learn), ``lens`` (safetensors), ``cluster``.
"""

from __future__ import annotations

__all__: list[str] = []

__version__ = "2.0.0"
