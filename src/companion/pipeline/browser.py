"""Chromium without a window: a page's elements after its scripts ran, its picture, its PDF. Nothing here is needed to
build the book; what uses it says so where no browser is installed.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = ["elements", "evaluate", "find", "pdf", "run"]

_NARROWEST = 500
"""Pixels of the narrowest window that Chromium opens."""
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find() -> str | None:
    """The browser: ``$CHROMIUM``, or the first of its usual names that is installed; None if there is none."""
    return os.environ.get("CHROMIUM") or next((path for name in _NAMES if (path := shutil.which(name))), None)


def run(address: str, *options: str, budget_ms: int = 120_000, timeout: float = 180.0) -> str:
    """Open an address with the given command-line options and return what the browser prints.

    Time in the page is virtual: timers run at once until nothing is left to do or the budget is spent.

    Raises ``RuntimeError`` if no browser is installed, or it did not end in time.
    """
    browser = find()
    if browser is None:
        raise RuntimeError(f"browser: expected one of {', '.join(_NAMES)}, found none (set CHROMIUM to its path)")
    with tempfile.TemporaryDirectory() as profile:
        command = [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-extensions",
            "--hide-scrollbars",
            "--allow-file-access-from-files",
            f"--user-data-dir={profile}",
            f"--virtual-time-budget={budget_ms}",
            *options,
            address,
        ]
        try:
            done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"browser: expected {address} within {timeout:g} s, it did not end") from None
    return done.stdout


def elements(page: Path, *, width: int = 1280, height: int = 2000) -> str:
    """The markup of a page after its scripts ran."""
    return run(page.resolve().as_uri(), f"--window-size={width},{height}", "--dump-dom")


def evaluate(page: Path, script: str, *, dark: bool = False, width: int = 1280, height: int = 2000) -> str:
    """Run an asynchronous JavaScript function body in a page once it has loaded; returns the text that it returns.

    The page is copied beside itself with the script added, so that addresses still work, and removed again. A width
    that no window can have, such as a telephone's, is that of a frame inside a window.
    """
    theme = "dark" if dark else "light"
    begin = (
        f"<script>localStorage.setItem('mode','{theme}');localStorage.setItem('theme','{theme}');"
        f"document.documentElement.dataset.mode='{theme}';document.documentElement.dataset.theme='{theme}';</script>"
    )
    end = (
        "<script>window.addEventListener('load', async () => { await window.MathJax?.startup?.promise; let text; "
        f"try {{ text = await (async () => {{ {script} }})(); }} catch (error) {{ text = 'ERROR ' + error; }}"
        "const place = document.createElement('pre'); place.id = 'book-result'; "
        "place.textContent = btoa(unescape(encodeURIComponent(String(text)))); document.body.append(place); "
        "if (parent !== window) parent.postMessage(place.outerHTML, '*'); });</script>"
    )
    text = page.read_text(encoding="utf-8")
    copy, frame = page.with_name(f"__{page.name}"), page.with_name(f"__frame-{page.name}")
    copy.write_text(
        text.replace("<head>", "<head>" + begin, 1).replace("</body>", end + "</body>", 1), encoding="utf-8"
    )
    frame.write_text(
        "<!DOCTYPE html><body><script>addEventListener('message', (event) => "
        "{ document.body.insertAdjacentHTML('beforeend', event.data); });</script>"
        f'<iframe src="{copy.name}" style="width:{width}px; height:{height}px; border:0"></iframe></body>',
        encoding="utf-8",
    )
    try:
        out = elements(frame if width < _NARROWEST else copy, width=max(width, _NARROWEST), height=height)
    finally:
        copy.unlink()
        frame.unlink()
    found = re.search(r'<pre id="book-result"[^>]*>([^<]*)</pre>', out)
    if found is None:
        raise RuntimeError(f"browser: expected {page.name} to finish loading, it did not")
    result = base64.b64decode(found[1]).decode()
    if result.startswith("ERROR "):
        raise RuntimeError(f"browser: {page.name}: {result.removeprefix('ERROR ')}")
    return result


def pdf(page: Path, target: Path) -> None:
    """Print a page as the browser would, with its headings as bookmarks and its structure for readers aloud."""
    run(
        page.resolve().as_uri(),
        f"--print-to-pdf={target.resolve()}",
        "--no-pdf-header-footer",
        "--generate-pdf-document-outline",
        "--export-tagged-pdf",
        timeout=600,
    )
    if not target.is_file():
        raise RuntimeError(f"browser: expected {target.name} to be written, it was not")
