"""Makes a folder that an archive can take as it is: the site, the sources of its commit, and their metadata.

The place of the DOI is reserved: it is that of ``_config.yml``, and empty until an archive has given one. An archive
that reserves a DOI before publication lets it stand in the very files that it stores.
"""

from __future__ import annotations

import json
from pathlib import Path

from companion import project
from companion.running import disk, freshness
from companion.site import catalogue, rendering


def write(root: Path) -> list[Path]:
    """Write ``_build/deposit`` from the finished site; returns its files.

    Raises ValueError if there is no whole site, which has every page as a packed notebook, or it was made from a tree
    that differs from its commit, which nobody could find again.
    """
    site, target, state = root / "_build" / "html", root / "_build" / "deposit", freshness.state(root)
    if not rendering.stands(root):
        raise ValueError("the site: expected a whole one in _build/html, got none; `make book` makes it")
    index = json.loads((site / catalogue.INDEX).read_text(encoding="utf-8"))
    if state.dirty or index["dirty"] or index["commit"] != state.commit:
        raise ValueError(
            "the site: expected one that was made from the commit that stands here, with nothing changed; commit, and "
            "run `make book`"
        )
    disk.remove(target)
    target.mkdir(parents=True)
    slug = project.identity(root).library
    for name, folder in (("site", site), ("notebooks", site / "_sources" / "notebooks")):
        files = (path for path in sorted(folder.rglob("*")) if path.is_file())
        contents = ((path.relative_to(folder).as_posix(), path.read_bytes()) for path in files)
        rendering.archive(target / f"{slug}-{name}.zip", contents)
    freshness.archive(root, target / f"{slug}-sources.zip")
    (target / "metadata.json").write_text(_metadata(root, state) + "\n", encoding="utf-8")
    (target / "README.md").write_text(_readme(root, state), encoding="utf-8")
    sums = "".join(f"{digest}  {name}\n" for name, digest in disk.digests(target).items())
    (target / "SHA256SUMS").write_text(sums, encoding="utf-8")
    return sorted(target.iterdir())


def _metadata(root: Path, state: freshness.State) -> str:
    """The fields of a deposit in Zenodo's form; other archives ask for the same facts."""
    who = project.identity(root)
    works = [work for work in catalogue.sources(root).values() if work["accompanied"] and work["address"]]
    fields = {
        "title": who.title,
        "upload_type": "software",
        "doi": who.doi,
        "publication_date": state.date,
        "version": who.version,
        "creators": [{"name": who.author}],
        "license": "MIT",
        "access_right": "open",
        "notes": f"Prose, figures and data are under CC BY 4.0. Commit {state.commit}.",
        "related_identifiers": [
            {"identifier": who.repository, "relation": "isSupplementTo"},
            {"identifier": who.site, "relation": "isDocumentedBy"},
            *({"identifier": work["address"], "relation": "references"} for work in works),
        ],
    }
    return json.dumps({"metadata": fields}, indent=1, ensure_ascii=False)


def _readme(root: Path, state: freshness.State) -> str:
    who = project.identity(root)
    doi = who.doi or "none yet: reserve one at the archive, set `companion: doi:` in _config.yml, and make this again"
    return (
        f"# {who.title}, version {who.version}\n\nDOI: {doi}\n\nCommit: {state.commit} of {who.repository}\n\n"
        f"- `{who.library}-site.zip`: the book; unpack it and open index.html, no network is needed.\n"
        f"- `{who.library}-notebooks.zip`: every page as a notebook that carries the library and runs alone.\n"
        f"- `{who.library}-sources.zip`: everything it is made of; `make book` makes it again.\n"
        f"- `metadata.json`: the fields of the deposit.\n"
        "- `SHA256SUMS`: `sha256sum -c SHA256SUMS` checks the files.\n"
    )
