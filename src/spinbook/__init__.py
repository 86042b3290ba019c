"""Spin models and the attention of transformers: the library behind the book. Importing it loads no submodule.

Each physical idea has its own module; the book's chapters import what they use.
"""

from __future__ import annotations

import sys

from spinbook._moved import Finder

__all__: list[str] = []

__version__ = "1.0.0.dev0"

# Before Python's own finder, which would load the parts of a package that moved a second time.
sys.meta_path.insert(0, Finder())
