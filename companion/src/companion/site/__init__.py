"""From text to a page that has proved its numbers: pairing, freshness, execution, claims, site. It computes no results.

    text notebook -> paired .ipynb -> papermill -> claims and figures -> Jupyter Book -> checks of the pages

Everything generated lies in ``_build``; every step reads plain files that the step before it wrote.
"""

from __future__ import annotations

__all__: list[str] = []
