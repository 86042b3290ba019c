"""Runs inside every chapter's kernel before its first cell: strict warnings, and a record of progress.

The record (``progress.json`` in the folder ``COMPANION_OUT``) is rewritten after every cell, so it also survives a
crash. It says which modules of the packages in ``COMPANION_PACKAGES`` the kernel has loaded, which files of the
repository Python has opened in it, and which settings of IPython were read. What compiled code and processes that the
kernel starts open for themselves is not seen.
"""

import ctypes
import gc
import json
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType


def _end_with_parent() -> None:
    """Linux kills this process when the one that started it is killed, even while it computes."""
    if sys.platform == "linux":
        set_death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(set_death_signal, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != int(os.environ.get("JPY_PARENT_PID", os.getppid())):
            os._exit(1)


def _watch(root: str, own: str) -> set[str]:
    """Paths below ``root`` that are opened from now on, without those in the folder ``own`` and in this environment."""
    opened: set[str] = set()

    def inside(*folders: str) -> tuple[str, ...]:
        return tuple(
            path + os.sep for folder in folders for path in (os.path.abspath(folder), os.path.realpath(folder))
        )

    repository, environment, apart = inside(root), inside(sys.prefix), inside(sys.prefix, own)

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        path = os.path.abspath(os.fsdecode(arguments[0]))
        if path not in opened and not path.startswith(environment):
            # A link may lead into the repository, or out of it.
            target = os.path.realpath(path)
            if path.startswith(repository) and not path.startswith(apart):
                opened.add(path)
            elif target.startswith(repository) and not target.startswith(apart):
                opened.add(target)

    sys.addaudithook(note)
    # A module in the place of another one, as src/random.py, has been imported by now.
    files = [str(getattr(module, "__file__", None)) for module in list(sys.modules.values())]
    code = tuple(os.path.join(folder, "") for folder in os.environ["COMPANION_CODE"].split(os.pathsep))
    opened.update(path for path in files if path.startswith(code))
    return opened


class _Anew(SourceFileLoader):
    """Compiles a module from its source: Python trusts compiled code that is of a source of equal size and second."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class _Finder:
    """Finds the modules of some packages where Python does, and has them compiled anew."""

    def __init__(self, packages: set[str]) -> None:
        self.packages = packages

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name.partition(".")[0] in self.packages else None
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Anew(spec.loader.name, spec.loader.path)
        return spec


def be_strict() -> None:
    """A warning nobody handles is an error in a book; what third parties deprecate among themselves is theirs."""
    warnings.filterwarnings("error")
    for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.filterwarnings("ignore", category=category)
    # Another process was still writing what this one wanted to load, which is then compiled here.
    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache entry")


def _install() -> None:
    from ipykernel.kernelapp import IPKernelApp
    from IPython import get_ipython

    _end_with_parent()
    # What a page holds is large, and Python would look through it for rubbish every few moments.
    gc.set_threshold(20_000, 20, 50)
    target = Path(os.environ["COMPANION_OUT"]) / "progress.json"
    opened = _watch(os.path.abspath(os.environ["COMPANION_ROOT"]), os.environ["COMPANION_OUT"])
    own_packages = set(os.environ["COMPANION_PACKAGES"].split())
    # In the place of Python's own finder, behind those that are there before: they may change what they find.
    sys.meta_path.insert(sys.meta_path.index(PathFinder), _Finder(own_packages))
    count = 0

    def write(running: bool) -> None:
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        # ru_maxrss is in kilobytes on Linux and in bytes on macOS.
        unit = 1 if sys.platform == "darwin" else 1024
        names = list(sys.modules)
        modules = sorted(name for name in names if name.partition(".")[0] in own_packages)
        others = {name.partition(".")[0] for name in names} - own_packages - set(sys.stdlib_module_names)
        content = {
            "cell": count,
            "running": running,
            "time": time.time(),
            "peak_bytes": max(own, children) * unit,
            "modules": modules,
            "others": sorted(others),
            "opened": sorted(opened.copy()),
            "settings": IPKernelApp.instance().loaded_config_files,
        }
        draft = target.with_suffix(".draft")
        draft.write_text(json.dumps(content), encoding="utf-8")
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
    be_strict()


# Only a kernel that the pipeline starts has a folder to write to.
if "COMPANION_OUT" in os.environ:
    _install()
