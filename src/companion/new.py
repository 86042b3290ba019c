"""Writes the first files of a book: one page for one paper, from the folder ``template`` beside this module."""

from __future__ import annotations

import keyword
import re
from importlib import util
from pathlib import Path

from companion.declaring import notebooks
from companion.site import citation

_TEMPLATE = Path(__file__).with_name("template")


def book(folder: Path, name: str) -> list[Path]:
    """Write a book whose chapter is called ``name`` into ``folder / name``; returns its files.

    Its library has the same name, with underscores. Raises ``ValueError`` if no chapter can have that name, if a
    package is installed that has the name of the library, or if the folder is not empty.
    """
    library, root = name.replace("-", "_"), folder / name
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or keyword.iskeyword(library):
        raise ValueError(f"NAME: expected words of lower case letters and digits, as in random-walks; got {name!r}")
    if util.find_spec(library) is not None:
        raise ValueError(f"NAME: expected a name that no package has, for the library; {library!r} is one")
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise ValueError(f"NAME: expected a folder that does not exist or is empty, got {root}")
    return write(root, name, library)


def write(root: Path, chapter: str, library: str) -> list[Path]:
    """Write the files of the template for a chapter and a library, and those that ``companion sync`` makes of them."""
    written = []
    for path in sorted(_TEMPLATE.rglob("*")):
        name = path.relative_to(_TEMPLATE).as_posix()
        if path.is_file() and "__pycache__" not in name:
            # Git and build tools would obey a file of this name in the package.
            target = root / _named(name.replace("gitignore", ".gitignore"), chapter, library)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text(name, chapter, library), encoding="utf-8")
            written.append(target)
    return [*written, *notebooks.sync(root), *citation.sync(root)]


def text(name: str, chapter: str, library: str) -> str:
    """A file of the template, by its path there."""
    return _named((_TEMPLATE / name).read_text(encoding="utf-8"), chapter, library)


def _named(words: str, chapter: str, library: str) -> str:
    return words.replace("CHAPTER", chapter).replace("LIBRARY", library)
