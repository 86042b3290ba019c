"""Writes a report for each source in the form of the journal ReScience C: metadata, text in LaTeX, and bibliography.

They are made from the ledger of the finished site and hold nothing that it does not hold. What only the authors of a
submission know (names, addresses, identifiers, the scientific domain) is left empty in the metadata.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from companion import claims, plain, project
from companion.declaring import texts
from companion.running import disk
from companion.site import directives

__all__ = ["escaped", "write"]

_SPECIAL = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}
_HEADINGS = {
    "reproduced": "What was reproduced",
    "partly": "What was reproduced in part",
    "corrected": "What had to be corrected",
    "not-reproduced": "What could not be reproduced",
    "undecided": "What is left undecided",
    "not-attempted": "What was not attempted",
    "result": "Results beside the source",
    "exploratory": "Seen beside the source, without a plan",
    "software-check": "Checks of the software, not counted",
}


def escaped(text: str) -> str:
    """Words for LaTeX, in which no letter has a meaning of its own.

    >>> escaped("50 % of J_ij & more")
    '50 \\\\% of J\\\\_ij \\\\& more'
    """
    return "".join(_SPECIAL.get(letter, letter) for letter in plain.plain(text))


def write(root: Path, folder: Path, *, commit: str) -> list[Path]:
    """Write ``KEY/metadata.yaml``, ``KEY/content.tex`` and ``KEY/bibliography.bib`` for each source; returns the files.

    Read from the finished site. A source that no claim is about has no report.
    """
    entries = json.loads((root / "_build" / "html" / "claims.json").read_text(encoding="utf-8"))
    written = []
    for key in project.sources(root):
        own = [entry for entry in entries if key in (entry["source"]["key"], _accompanied(entries, entry))]
        if not any(entry["source"]["key"] == key for entry in own):
            continue
        target = folder / key
        target.mkdir(parents=True, exist_ok=True)
        made = {
            "metadata.yaml": _metadata(root, key, own, commit),
            "content.tex": _content(root, key, own, commit),
            "bibliography.bib": _bibliography(root, {entry["source"]["key"] for entry in own} - {None}),
        }
        for name, text in made.items():
            disk.write(target / name, text)
            written.append(target / name)
    return written


def _accompanied(entries: Sequence[Mapping[str, Any]], entry: Mapping[str, Any]) -> str | None:
    """The source of a result of the book's own: that of most claims of its chapter."""
    if entry["source"]["key"] is not None:
        return None
    keys = [one["source"]["key"] for one in entries if one["chapter"] == entry["chapter"] and one["source"]["key"]]
    return max(sorted(set(keys)), key=keys.count) if keys else None


def _of_the_source(key: str, entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [entry for entry in claims.among(entries)["said"] if entry["source"]["key"] == key]


def _metadata(root: Path, key: str, entries: Sequence[Mapping[str, Any]], commit: str) -> str:
    who, work = project.identity(root), project.references(root)[key]
    said = _of_the_source(key, entries)
    counts = {verdict: sum(entry["verdict"] == verdict for entry in said) for verdict in _HEADINGS}
    held = counts["reproduced"] + counts["partly"]
    # The journal's mark of a replication that did not succeed is for a source whose statements mostly fell.
    mark = "[Re]" if 2 * held >= sum(counts.values()) - counts["not-attempted"] else "[¬Re]"
    listed = ", ".join(f"{number} {verdict.replace('-', ' ')}" for verdict, number in counts.items() if number)
    fields = {
        "title": f"{mark} {work['title']}",
        "authors": [{"name": None, "orcid": None, "email": None, "affiliations": "1,*"}],
        "affiliations": [{"code": 1, "name": None, "address": None}],
        "keywords": f"rescience c, {who.title.lower()}, python",
        "code": [{"url": who.repository}, {"doi": who.doi or None}, {"swh": None}],
        "data": [{"url": f"{who.site}claims.json"}, {"doi": who.doi or None}],
        "replication": [
            {"cite": f"{work['author']} ({work['year']}). {work['title']}."},
            {"bib": key},
            {"url": work.get("url") or (f"https://arxiv.org/abs/{work['eprint']}" if "eprint" in work else None)},
            {"doi": work.get("doi")},
        ],
        "abstract": (
            f"Of {len(said)} checkable statements of the source: {listed}. The program that measures sees neither the "
            "published values nor the verdicts, and has to tell each statement from a wrong answer. All is computed "
            f"again by every build of {who.title}."
        ),
        "bibliography": "bibliography.bib",
        "type": "Replication",
        "domain": None,
        "language": "Python",
        "review": [{"url": None}],
        "contributors": [{"name": None, "orcid": None, "role": role} for role in ("editor", "reviewer", "reviewer")],
        "dates": [{"received": None}, {"accepted": None}, {"published": None}],
        "article": [{"number": None}, {"doi": None}, {"url": None}],
        "journal": [{"name": "ReScience C"}, {"issn": "2430-3658"}, {"volume": None}, {"issue": None}],
    }
    header = f"# From the ledger of version {who.version}, commit {commit}. Fill in authors and affiliations.\n"
    return header + yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=120)


def _content(root: Path, key: str, entries: Sequence[Mapping[str, Any]], commit: str) -> str:
    who, work, text = project.identity(root), project.references(root)[key], texts.read(root).get(key)
    said = _of_the_source(key, entries)
    version = f", in the version of {text.version}" if text is not None else ""
    parts = [
        r"\section{Introduction}",
        f"This report is about {escaped(work['title'])}~\\supercite{{{key}}}{escaped(version)}. It lists every "
        f"statement of the source that a computation can decide, {len(said)} in number, and what became of each.",
        r"\section{Methods}",
        "Each statement is declared, with its place in the source, the published value and the expected verdict, in a "
        "file that the measuring program cannot see; which of the two was written first is not claimed. "
        "The gap between both has to stay within a bound made of the precision of the statement and of the uncertainty "
        "of the measurement; a wrong answer, the rival, is measured by the same code and has to miss by more. "
        f"The programs, their data and the ledger are at \\url{{{who.repository}}}, commit \\texttt{{{commit[:12]}}}; "
        r"\texttt{make book} computes all of it again.",
        r"\section{Results}",
    ]
    for verdict, heading in _HEADINGS.items():
        if some := [entry for entry in entries if entry["verdict"] == verdict]:
            parts += [f"\\subsection{{{heading} ({len(some)})}}", r"\begin{itemize}"]
            parts += [_item(who, entry) for entry in some]
            parts.append(r"\end{itemize}")
    parts += [
        r"\section{Conclusion}",
        "The verdict on each statement stands above, with the numbers it rests on. A correction is a statement about a "
        "printed formula or number and about nothing else.",
    ]
    return "\n\n".join(parts) + "\n"


def _item(who: project.Identity, entry: Mapping[str, Any]) -> str:
    address = who.chapter_url(entry["page"], claims.anchor_of(entry["id"])).replace("#", "\\#")
    link = f"\\href{{{address}}}{{\\texttt{{{escaped(entry['id'])}}}}}"
    where = f" ({escaped(entry['source']['where'])})" if entry["source"]["where"] else ""
    words = [f"\\item {link}{where}: {escaped(entry['says'])}"]
    if entry["quote"]:
        words.append(f"The source says: {escaped(directives.quoted(entry))}.")
    if isinstance(entry["published"], int | float | str) and not isinstance(entry["published"], bool):
        words.append(f"Published: {escaped(str(entry['published']))}.")
    if entry["measured"] is not None:
        error = f" $\\pm$ {entry['uncertainty']:.2g}" if entry["uncertainty"] else ""
        words.append(f"Measured: {entry['measured']:.6g}{error}.")
    if entry["printed_tex"] and entry["corrected_tex"]:
        words.append(f"As printed:\n\\[{entry['printed_tex']}\\]\nAs it should be:\n\\[{entry['corrected_tex']}\\]")
    if entry["because"]:
        words.append(escaped(entry["because"]))
    return " ".join(words)


def _bibliography(root: Path, keys: set[str]) -> str:
    works = project.references(root)
    entries = []
    for key in sorted(keys):
        fields = "".join(f"  {name} = {{{value}}},\n" for name, value in works[key].items() if name != "keywords")
        entries.append(f"@misc{{{key},\n{fields}}}\n")
    return "\n".join(entries)
