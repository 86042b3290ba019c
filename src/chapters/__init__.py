"""Code that only the pages of the book need, in one module or folder for each chapter.

A figure draws results that it is given; only the title page computes its own. A function may summarise samples (mean,
standard error, band, histogram) and draw guides to the eye with given slopes; whatever is fitted or derived comes from
``spinbook`` and ``experiments``. ``style`` holds the sizes, fonts and palettes of the whole book,
``scripts`` the markup of its live models.
"""

from __future__ import annotations

# It names the extra that brings a package which is missing.
from spinbook import __version__ as __version__
