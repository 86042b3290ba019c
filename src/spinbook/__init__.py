"""Spin models and the attention of transformers: the library behind the book. Importing it loads no submodule.

Each physical idea has its own module; the book's chapters import what they use. Extras of the package bring what only
some modules need: ``torch``, ``notebook`` (matplotlib, scikit-learn), ``lens`` (safetensors, tokenizers), ``cluster``.
"""

from __future__ import annotations

__all__: list[str] = []

__version__ = "2.0.0.dev0"
