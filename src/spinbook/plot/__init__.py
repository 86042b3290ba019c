"""One module per chapter, one function per figure. Nothing here computes a result, but the title page its own.

``style`` holds the sizes, fonts and palettes of the whole book.
"""

from __future__ import annotations

__all__: list[str] = []
