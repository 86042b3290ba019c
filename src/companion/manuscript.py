"""Reads the source files of the book, Markdown, YAML and Python, and names file and line of every error.

Every error says also what was expected and what came. What editors and file managers leave beside a file, such as
locks and copies of an older state, is skipped.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser of libyaml where PyYAML has it, ten times as fast."""
_LEFT_BEHIND = re.compile(r"\..*|.*~|#.*#|.*\.sw[op]|__pycache__|Thumbs\.db|desktop\.ini")


@dataclass(frozen=True, order=True)
class Finding:
    """One breach of one rule, at a line of a file (from 1; 0 where the file as a whole is meant)."""

    file: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: [{self.rule}] {self.message}"


class Findings(ValueError):
    """Everything that is wrong with what was read, one finding a line."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = sorted(set(findings))
        super().__init__("\n".join(map(str, self.findings)))


class Unreadable(ValueError):
    """A file that is not what it should be; ``line`` counts from 1 and is 0 where the file as a whole is meant."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        base = next((folder for folder in path.parents if (folder / "_config.yml").exists()), path.parent)
        self.file, self.line, self.reason = path.relative_to(base).as_posix(), line, reason
        super().__init__(f"{self.file}:{line}: {reason}" if line else f"{self.file}: {reason}")


def is_ours(name: str) -> bool:
    """Whether a file or folder of this name belongs to the book.

    >>> [is_ours(name) for name in ("index.md", ".#index.md", "index.md~", "#index.md#", "._index.md", ".index.md.swp")]
    [True, False, False, False, False, False]
    """
    return _LEFT_BEHIND.fullmatch(name) is None


def listed(folder: Path, pattern: str) -> list[Path]:
    """What matches ``pattern`` in ``folder`` and belongs to the book, sorted; [] where there is no such folder."""
    return sorted(path for path in folder.glob(pattern) if all(map(is_ours, path.relative_to(folder).parts)))


def text(path: Path) -> str:
    r"""The text of a file, with ``\n`` at the ends of its lines. Raises ``Unreadable`` for what is no text in UTF-8."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Unreadable(path, 0, f"expected a file: {error.strerror}") from error
    try:
        return re.sub("\r\n?", "\n", content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Unreadable(path, line, f"expected text in UTF-8, got the byte 0x{content[error.start]:02x}") from error


def spaced(words: str) -> str:
    """Words with one space between them."""
    return " ".join(words.split())


def parse(path: Path) -> tuple[Any, Any]:
    """The node of a file in YAML, which has its lines, and its content; ``(None, None)`` for an empty file.

    What is returned is kept, and must not be changed. Raises ``Unreadable`` for what is no YAML, and for keys that are
    no words or are given twice.
    """
    said = text(path)
    try:
        return _parsed(said)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        raise Unreadable(path, line, f"expected YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, RecursionError, TypeError, ValueError) as error:
        # As of a date in a 13th month.
        raise Unreadable(path, 0, f"expected YAML: {error}") from error


def code(path: Path) -> ast.Module:
    """The syntax tree of a file in Python. Raises ``Unreadable`` if it is not Python."""
    try:
        return ast.parse(text(path))
    except SyntaxError as error:
        raise Unreadable(path, error.lineno or 0, f"expected Python: {error.msg}") from error


@lru_cache(maxsize=256)
def _parsed(said: str) -> tuple[Any, Any]:
    loader = _LOADER(said)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, None
        _check_keys(node)
        return node, loader.construct_document(node)
    finally:
        loader.dispose()


def _check_keys(node: Any) -> None:
    """Refuse keys that are no words or are given twice."""
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.tag != "tag:yaml.org,2002:str" or key.value in seen:
                reason = f"expected every key once, and a word, got {key.value!r}"
                raise yaml.MarkedYAMLError(None, None, reason, key.start_mark)
            seen.add(key.value)
            _check_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _check_keys(value)


def mapping(path: Path, of: str) -> dict[str, Any]:
    """The content of a file that is a mapping in YAML, ``of`` something; {} where it is absent or empty.

    Raises ``Unreadable`` if it is anything else.
    """
    if not path.exists():
        return {}
    _, content = parse(path)
    if content is not None and not isinstance(content, dict):
        raise Unreadable(path, 1, f"expected {of}, got {'a list' if isinstance(content, list) else repr(content)[:80]}")
    return content or {}
