"""What is wrong with a file: where, by which rule, in words. All of it is found before anything is said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

__all__ = ["Finding", "Findings", "entries", "parse"]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser of libyaml where PyYAML has it, ten times as fast: one check of the book reads some 60,000 lines."""


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


def parse(text: str) -> tuple[Any, Any]:
    """The node of a text in YAML, which knows its lines, and its content; ``(None, None)`` where it says nothing.

    Raises ``yaml.MarkedYAMLError`` with the line of what is not YAML.
    """
    return yaml.compose(text, Loader=_LOADER), yaml.load(text, Loader=_LOADER)


def entries(path: Path) -> list[tuple[Any, int]]:
    """Every entry of a list in YAML with its line; none where there is no file; what is no list as one entry."""
    if not path.is_file():
        return []
    node, content = parse(path.read_text(encoding="utf-8"))
    if node is None:
        return []
    if not isinstance(content, list):
        return [(content, 1)]
    return [(entry, one.start_mark.line + 1) for entry, one in zip(content, node.value, strict=True)]
