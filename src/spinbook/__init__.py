"""Spin models and the attention of transformers: the library behind the book. Importing it loads no submodule.

Each physical idea has its own module; the book's chapters import what they use. A plain install has not all that they
need: where one of ``EXTRAS`` is missing, the error says which extra brings it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType

__all__ = ["EXTRAS"]

__version__ = "1.1.0.dev0"

EXTRAS = {
    "distributed": "cluster",
    "matplotlib": "notebook",
    "safetensors": "lens",
    "sklearn": "notebook",
    "tokenizers": "lens",
    "torch": "torch",
}
"""Packages that only some modules import, and the extra that brings each."""
_ROOMS = {"spinbook", "experiments", "chapters"}


class _NotFound:
    """Comes after all that find modules: what it is asked for, none of them has found."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """None, as for any missing module, unless a module of the book is importing one of ``EXTRAS``."""
        if name in EXTRAS and _package(sys._getframe(1)) in _ROOMS:
            wanted = f'expected to be installed, as by pip install "{__name__}[{EXTRAS[name]}]"'
            raise ModuleNotFoundError(f"{name}: {wanted}, got none", name=name)
        return None


def _package(frame: FrameType | None) -> str:
    """The outermost package of the code that imports, beyond the frames of the import itself."""
    while frame is not None and (frame.f_globals.get("__name__") or "").startswith("importlib."):
        frame = frame.f_back
    return ((frame.f_globals.get("__package__") if frame else None) or "").partition(".")[0]


sys.meta_path.append(_NotFound)
