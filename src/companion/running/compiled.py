"""Keeps programs that XLA has compiled from run to run. A kernel gets a folder of its own with checked copies.

JAX trusts what lies in its folder. Here the name of a kept program ends with the digest of its content, and another
kind of processor has another folder, so that a damaged or a foreign program is compiled anew.
"""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

from companion.running import disk

LARGEST = 200_000_000
"""Bytes of all kept programs; beyond them all are forgotten, since those of earlier code are never asked for again."""


def store(root: Path) -> Path:
    """The folder of the programs that were compiled on a processor like this one."""
    described = Path("/proc/cpuinfo")
    flags = (
        [line for line in described.read_text(encoding="utf-8").splitlines() if line.startswith("flags")]
        if described.exists()
        else []
    )
    kind = f"{platform.machine()} {platform.processor()} {flags[:1]}"
    return root / "_build" / "compiled" / hashlib.sha256(kind.encode()).hexdigest()[:16]


def lend(kept: Path, folder: Path) -> None:
    """Copy every kept program whose content has the digest of its name into ``folder``; the others are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(kept.glob("[!.]*")) if kept.is_dir() else []:
        content = path.read_bytes() if path.is_file() else b""
        if path.suffix == _digest(content):
            (folder / path.stem).write_bytes(content)
        else:
            disk.remove(path)


def keep(folder: Path, kept: Path) -> None:
    """Keep the programs of ``folder`` that are new. At every moment each of them is whole or absent."""
    there = {path.stem: path.stat().st_size for path in kept.glob("[!.]*")} if kept.is_dir() else {}
    if sum(there.values()) > LARGEST:
        disk.remove(kept)
        there = {}
    for path in sorted(folder.glob("*-cache")):
        if path.name not in there:
            content = path.read_bytes()
            target = disk.folder(kept) / f"{path.name}{_digest(content)}"
            draft = target.with_name(f".{path.name}.{os.getpid()}")
            draft.write_bytes(content)
            draft.replace(target)


def _digest(content: bytes) -> str:
    return f".{hashlib.sha256(content).hexdigest()}"
