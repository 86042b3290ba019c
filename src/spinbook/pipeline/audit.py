"""The accessibility audit of the finished site: axe-core in a browser, every page, both themes. Mends nothing."""

import hashlib
import json
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from spinbook.pipeline import browser

# Pinned with its digest: an audit must not run whatever an address serves that day.
_VERSION = "4.14.1"
_DIGEST = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
_WIDTHS = (1280, 390)


@dataclass(frozen=True)
class Finding:
    """A rule that a page breaks: how bad, how often, and the first place."""

    page: str
    theme: str
    impact: str
    rule: str
    count: int
    place: str


def axe(root: Path) -> str:
    """The text of axe-core, from `_build/axe`, fetched there the first time by npm.

    Raises
    ------
    RuntimeError
        if it cannot be fetched, or is not the version that was pinned.
    """
    kept = root / "_build" / "axe" / "package" / "axe.min.js"
    if not kept.is_file():
        folder = root / "_build" / "axe"
        folder.mkdir(parents=True, exist_ok=True)
        npm = shutil.which("npm")
        if npm is None:
            raise RuntimeError("axe-core: expected npm, which fetches it, found none")
        done = subprocess.run(
            [npm, "pack", "--silent", f"axe-core@{_VERSION}"], cwd=folder, capture_output=True, text=True, check=False
        )
        archive = folder / f"axe-core-{_VERSION}.tgz"
        if not archive.is_file():
            raise RuntimeError(f"axe-core: expected npm to fetch it, got {done.stderr.strip() or 'nothing'}")
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="data")
    if hashlib.sha256(kept.read_bytes()).hexdigest() != _DIGEST:
        raise RuntimeError(f"axe-core: expected version {_VERSION} with the pinned digest, got another file")
    return kept.read_text()


def page(site: Path, name: str, script: str, *, dark: bool, width: int = _WIDTHS[0]) -> list[Finding]:
    """What axe-core finds on one page in one theme."""
    text = browser.evaluate(
        site / name,
        f"{script}; const r = await axe.run(document, {{resultTypes: ['violations']}}); "
        "return JSON.stringify(r.violations.map(v => ({rule: v.id, impact: v.impact, count: v.nodes.length, "
        "place: v.nodes[0].html.slice(0, 200)})));",
        dark=dark,
        width=width,
    )
    theme = "dark" if dark else "light"
    return [Finding(name, theme, **finding) for finding in json.loads(text)]


def site(root: Path, out: TextIO) -> list[Finding]:
    """Audit every page of `_build/html` in both themes; prints as it goes and returns the serious and critical ones."""
    html = root / "_build" / "html"
    script = axe(root).replace("</script", "<\\/script")
    bad = []
    names = sorted(p.relative_to(html).as_posix() for p in html.rglob("*.html"))
    for name in names:
        if name.startswith(("_static/", "figures/")):
            continue
        for dark in (False, True):
            found = page(html, name, script, dark=dark)
            serious = [finding for finding in found if finding.impact in ("serious", "critical")]
            bad += serious
            kinds = ", ".join(f"{finding.rule} ({finding.impact}, {finding.count})" for finding in found) or "nothing"
            print(f"{name}, {'dark' if dark else 'light'}: {kinds}", file=out, flush=True)
            for finding in serious:
                print(f"    {finding.rule}: {finding.place}", file=out, flush=True)
    print(f"{len(bad)} serious or critical finding(s) on {len(names)} pages in two themes", file=out)
    return bad
