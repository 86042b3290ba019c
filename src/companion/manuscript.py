"""Reads the files that a person writes: which of a folder are the book's, their text, and what their YAML says.

Every error names the file, what was expected and what came. What editors and file managers leave beside a file, such as
locks and copies of an older state, is not the book's.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import yaml

T = TypeVar("T")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser of libyaml where PyYAML has it, ten times as fast: one check of the book reads some 60,000 lines."""
_DEEPEST = 50
"""How deeply YAML may be nested. Some ten thousand levels overflow the stack of libyaml, which ends the interpreter."""
_MOST = 300_000
_LEFT_BEHIND = re.compile(r"\..*|.*~|#.*#|.*\.sw[op]|__pycache__|Thumbs\.db|desktop\.ini")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")


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


def kind(path: Path) -> str:
    """What stands at ``path`` in place of a file, in words; "" for a file."""
    if path.is_file():
        return ""
    if path.is_dir():
        return "a folder"
    if path.exists():
        return "a pipe, a socket or a device"
    return "a link that leads nowhere" if path.is_symlink() else "nothing"


def text(path: Path) -> str:
    r"""The text of a file in UTF-8, with ``\n`` at the ends of its lines.

    Raises ``Unreadable`` for what is no file, for other bytes and for control characters.
    """
    if other := kind(path):
        raise Unreadable(path, 0, f"expected a file, got {other}")
    content = path.read_bytes()
    try:
        said = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Unreadable(path, line, f"expected text in UTF-8, got the byte 0x{content[error.start]:02x}") from error
    if odd := _CONTROL.search(said):
        line = said.count("\n", 0, odd.start()) + 1
        raise Unreadable(path, line, f"expected text, got the control character 0x{ord(odd[0]):02x}")
    return re.sub("\r\n?", "\n", said)


def parse(path: Path) -> tuple[Any, Any]:
    """The node of a file in YAML, which knows its lines, and its content; ``(None, None)`` where it says nothing.

    What is returned is kept, and must not be changed. Raises ``Unreadable`` for what is no YAML, and for keys that are
    no words or are given twice.
    """
    return _read(path, "YAML", _parsed)


def code(path: Path) -> ast.Module:
    """The syntax tree of a file in Python. Raises ``Unreadable`` if it is not Python."""
    return _read(path, "Python", ast.parse)


def data(path: Path) -> Any:
    """The content of a file in JSON. Raises ``Unreadable`` if it is not JSON."""
    return _read(path, "JSON", json.loads)


def _read(path: Path, form: str, read: Callable[[str], T]) -> T:
    said = text(path)
    try:
        return read(said)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = error.problem or error.context
        raise Unreadable(path, mark.line + 1 if mark else 0, f"expected {form}: {reason}") from error
    except json.JSONDecodeError as error:
        raise Unreadable(path, error.lineno, f"expected {form}: {error.msg}") from error
    except SyntaxError as error:
        raise Unreadable(path, error.lineno or 0, f"expected {form}: {error.msg}") from error
    except (yaml.YAMLError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        # As of a date in a 13th month, a number of too many digits, or `!!bool perhaps`.
        raise Unreadable(path, 0, f"expected {form}: {error}") from error


@lru_cache(maxsize=256)
def _parsed(said: str) -> tuple[Any, Any]:
    depth = 0
    events: Iterator[Any] = yaml.parse(said, Loader=_LOADER)
    for event in events:
        mark: Any = event.start_mark
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise yaml.MarkedYAMLError(None, None, f"nested more than {_DEEPEST} levels deep", mark)
    loader = _LOADER(said)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, None
        _check(node, iter(range(_MOST)))
        return node, loader.construct_document(node)
    finally:
        loader.dispose()


def _check(node: Any, budget: Iterator[int], depth: int = 0) -> None:
    """Refuse keys that are no words or are given twice, and anchors that make much of little, or hold themselves."""
    if next(budget, None) is None or depth > _DEEPEST:
        reason = f"at most {_MOST} values, {_DEEPEST} levels deep, with those that anchors repeat"
        raise yaml.MarkedYAMLError(None, None, reason, node.start_mark)
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.tag != "tag:yaml.org,2002:str":
                raise yaml.MarkedYAMLError(None, None, f"a word as a key, got {_shown(key)}", key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(None, None, f"every key once, got {key.value!r} twice", key.start_mark)
            seen.add(key.value)
            _check(value, budget, depth + 1)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _check(value, budget, depth + 1)


def _shown(node: Any) -> str:
    return repr(node.value) if isinstance(node, yaml.ScalarNode) else "a list or a mapping"


def mapping(path: Path, of: str) -> dict[str, Any]:
    """The content of a file that is a mapping in YAML, ``of`` something; {} where it is absent or says nothing.

    Raises ``Unreadable`` if it is anything else.
    """
    if kind(path) == "nothing":
        return {}
    _, content = parse(path)
    if content is not None and not isinstance(content, dict):
        raise Unreadable(path, 1, f"expected {of}, got {'a list' if isinstance(content, list) else repr(content)[:80]}")
    return content or {}


def entries(path: Path) -> list[tuple[Any, int]]:
    """Every entry of a list in YAML with its line; none where there is no file; what is no list as one entry."""
    if kind(path) == "nothing":
        return []
    node, content = parse(path)
    if content is None:
        return []
    if not isinstance(content, list):
        return [(content, 1)]
    return [(entry, one.start_mark.line + 1) for entry, one in zip(content, node.value, strict=True)]
