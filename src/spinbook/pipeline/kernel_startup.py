"""Runs inside every chapter's kernel before its first cell: strict warnings, and a record of progress. No physics.

The record (`progress.json` in the folder `SPINBOOK_OUT`) is rewritten after every cell, so it also survives a crash.
"""

import json
import os
import resource
import sys
import time
import warnings
from pathlib import Path


def _install() -> None:
    from IPython import get_ipython

    target = Path(os.environ["SPINBOOK_OUT"]) / "progress.json"
    count = 0

    def write(running: bool) -> None:
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        # ru_maxrss is in kilobytes on Linux and in bytes on macOS.
        unit = 1 if sys.platform == "darwin" else 1024
        modules = sorted(name for name in list(sys.modules) if name.split(".")[0] == "spinbook")
        content = {
            "cell": count,
            "running": running,
            "time": time.time(),
            "peak_bytes": max(own, children) * unit,
            "modules": modules,
        }
        draft = target.with_suffix(".draft")
        draft.write_text(json.dumps(content))
        draft.replace(target)

    def before(info: object) -> None:
        nonlocal count
        count += 1
        write(running=True)

    def after(result: object) -> None:
        write(running=False)

    shell = get_ipython()
    shell.events.register("pre_run_cell", before)
    shell.events.register("post_run_cell", after)

    # A warning nobody handles is an error in a book; what third parties deprecate among themselves is theirs.
    warnings.filterwarnings("error")
    for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.filterwarnings("ignore", category=category)
    # Another process was still writing what this one wanted to load, which is then compiled here.
    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache entry")


# Only a kernel that the pipeline starts has a folder to write to.
if "SPINBOOK_OUT" in os.environ:
    _install()
