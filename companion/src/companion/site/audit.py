"""Audits the accessibility of the finished site: axe-core in a browser, every page, both themes."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from companion.site import browser, single_page

# Pinned with its digest: an audit must not run whatever an address serves that day.
_VERSION = "4.14.1"
_DIGEST = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
_PHONE = 390
_PAPER = 985
"""Pixels across a sheet of US letter between its margins, at four thirds: a browser makes a page smaller by no more
than that until it fits, and cuts what is wider still."""


@dataclass(frozen=True)
class Finding:
    """A rule that a page breaks: how bad, how often, and the first place."""

    impact: str
    rule: str
    count: int
    place: str


def axe(root: Path) -> str:
    """The text of axe-core, from ``_build/axe``, fetched there the first time by npm.

    Raises ``RuntimeError`` if it cannot be fetched, or is not the version that was pinned.
    """
    kept = root / "_build" / "axe" / "package" / "axe.min.js"
    if not kept.is_file():
        folder = root / "_build" / "axe"
        folder.mkdir(parents=True, exist_ok=True)
        npm = shutil.which("npm")
        if npm is None:
            raise RuntimeError("axe-core: expected npm, which fetches it, found none")
        done = subprocess.run(
            [npm, "pack", "--silent", f"axe-core@{_VERSION}"],
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        archive = folder / f"axe-core-{_VERSION}.tgz"
        if not archive.is_file():
            raise RuntimeError(f"axe-core: expected npm to fetch it, got {done.stderr.strip() or 'nothing'}")
        with tarfile.open(archive) as files:
            script = files.extractfile("package/axe.min.js")
            assert script is not None
            kept.parent.mkdir(exist_ok=True)
            kept.write_bytes(script.read())
    if hashlib.sha256(kept.read_bytes()).hexdigest() != _DIGEST:
        raise RuntimeError(f"axe-core: expected version {_VERSION} with the pinned digest, got another file")
    return kept.read_text(encoding="utf-8")


# What sticks out on the right although nothing around it scrolls: readers would have to push the whole page sideways.
# And a formula that is cut, where what holds it hides the rest.
_STICKING_OUT = """
document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
const page = document.documentElement;
const scrolls = (part) => part && part !== document.body
  && (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(part).overflowX) || scrolls(part.parentElement));
const out = [...document.querySelectorAll("main *")].filter((part) => {
  const box = part.getBoundingClientRect();
  return box.width && box.right > innerWidth + 1 && !scrolls(part.parentElement) && !scrolls(part);
});
const hides = (part) => ["hidden", "clip"].includes(getComputedStyle(part).overflowX);
out.push(...[...document.querySelectorAll("main .math")].filter((part) => part.clientWidth && hides(part)
  && [...part.querySelectorAll("mjx-container")].some((f) => f.getBoundingClientRect().width > part.clientWidth + 2)));
return JSON.stringify({wide: page.scrollWidth > innerWidth, inner: innerWidth, places: out.map((p) => p.outerHTML)});
"""


def overflow(
    page: Path, *, width: int | None = None, paper: bool = False, ask: Callable[..., str] = browser.evaluate
) -> list[Finding]:
    """What is wider than a page on a screen of ``width`` pixels, or than a sheet of ``paper``, where it is lost.

    The screen is a telephone's unless its width is given. ``ask`` puts the question to a browser: a new one unless
    given, see `browser.Browser.evaluate`.
    """
    width = width or (_PAPER if paper else _PHONE)
    seen = json.loads(ask(page, _STICKING_OUT, width=width, paper=paper))
    if seen["inner"] != width:
        raise RuntimeError(f"browser: expected a window {width} pixels wide, got {seen['inner']}")
    places = seen["places"] or (["the page itself"] if seen["wide"] else [])
    return [Finding("serious", "overflow", len(places), places[0][:200])] if places else []


def broken_rules(page: Path, script: str, *, dark: bool, ask: Callable[..., str]) -> list[Finding]:
    """What axe-core, whose text is ``script``, finds on a page in one theme; ``ask`` as in `overflow`."""
    text = ask(
        page,
        f"{script}; await new Promise((done) => setTimeout(done, 1000)); "
        "const r = await axe.run(document, {resultTypes: ['violations']}); "
        "return JSON.stringify(r.violations.map(v => ({rule: v.id, impact: v.impact, count: v.nodes.length, "
        "place: v.nodes[0].html.slice(0, 200)})));",
        dark=dark,
    )
    return [Finding(**finding) for finding in json.loads(text)]


def site(root: Path, out: TextIO) -> list[Finding]:
    """Audit every page of ``_build/html`` in both themes and at a telephone's width, and the editions for paper.

    Prints as it goes, in the end also the figures that are crowded, and returns the serious and critical findings.
    """
    html = root / "_build" / "html"
    script = axe(root).replace("</script", "<\\/script")
    bad = []
    names = sorted(path.relative_to(html).as_posix() for path in html.rglob("*.html"))
    # The edition for paper is not for screens.
    names = [name for name in names if not name.startswith(("_static/", "figures/", "print"))]
    # A start of the browser takes longer than a page.
    with browser.Browser() as one:
        for name in names:
            bad += (sticking := overflow(html / name, ask=one.evaluate))
            for finding in sticking:
                print(f"{name}, phone: {finding.count} part(s) too wide: {finding.place}", file=out, flush=True)
            for dark in (False, True):
                found = broken_rules(html / name, script, dark=dark, ask=one.evaluate)
                serious = [finding for finding in found if finding.impact in ("serious", "critical")]
                bad += serious
                kinds = ", ".join(f"{finding.rule} ({finding.impact}, {finding.count})" for finding in found)
                print(f"{name}, {'dark' if dark else 'light'}: {kinds or 'nothing'}", file=out, flush=True)
                for finding in serious:
                    print(f"    {finding.rule}: {finding.place}", file=out, flush=True)
        for edition in single_page.to_print(root).values():
            bad += (cut := overflow(edition, paper=True, ask=one.evaluate))
            print(f"{edition.name}, paper: {cut[0].count if cut else 'no'} part(s) too wide", file=out, flush=True)
    for record in json.loads((html / "figures.json").read_text(encoding="utf-8")):
        for words in record.get("crowded", []):
            print(f"figure {record['id']}: {words}", file=out)
    print(f"{len(bad)} serious or critical finding(s) on {len(names)} pages in two themes and on a telephone", file=out)
    return bad
