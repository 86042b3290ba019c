"""Markup of live models: the numbers that a script of the page starts from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def markup(chapter: str, content: Mapping[str, Any]) -> str:
    """The ``content`` as JSON with the identifier CHAPTER-live-data, and the scripts that read it.

    The scripts are ``kernel.js`` and CHAPTER.js of the page's folder ``_static/live``; without them nothing is
    shown. Raises ``ValueError`` for a number that is not finite, which JSON cannot hold.

    >>> print(markup("adaptive-tap", {"coupling": 0.5}).split("<script src")[0])
    <script type="application/json" id="adaptive-tap-live-data">{"coupling":0.5}</script>
    """
    data = json.dumps(content, separators=(",", ":"), allow_nan=False)
    scripts = "".join(f'<script src="../_static/live/{name}.js" defer></script>' for name in ("kernel", chapter))
    return f'<script type="application/json" id="{chapter}-live-data">{data}</script>{scripts}'
