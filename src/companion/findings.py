"""Defines a finding: a breach of a rule, with the file, the line, the rule and a message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


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
