"""What is wrong with a file: where, by which rule, in words. All of it is found before anything is said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

__all__ = ["Finding", "Findings", "entries"]


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


def entries(path: Path) -> list[tuple[Any, int]]:
    """Every entry of a list in YAML with its line; none where there is no file; what is no list as one entry."""
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if node is None:
        return []
    content = yaml.safe_load(text)
    if not isinstance(content, list):
        return [(content, 1)]
    return [(entry, one.start_mark.line + 1) for entry, one in zip(content, node.value, strict=True)]
