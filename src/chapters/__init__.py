"""One module per chapter, one function per figure. Nothing here computes a result, but the title page its own.

Samples are shown by their mean, their standard error, their band or their histogram, and guides to the eye have slopes
that are given; what is fitted or derived comes from the library. ``style`` holds the sizes, fonts and palettes of the
whole book, ``scripts`` the markup of its live models.
"""

from __future__ import annotations

__all__: list[str] = []
