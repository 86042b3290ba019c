"""What left the library: old names work, are the same things, and say where they went; others say it."""

import importlib
import pickle
import pkgutil
import re
import subprocess
import sys
import warnings
from types import ModuleType

import pytest

from spinbook import _moved


@pytest.fixture
def forgotten():
    """As in an interpreter that has not imported anything by an old name."""
    old = [name for name in sys.modules if _moved.new_name(name)]
    for name in old:
        del sys.modules[name]
    yield
    for name in [name for name in sys.modules if _moved.new_name(name)]:
        del sys.modules[name]


@pytest.mark.parametrize("old", [name for name in _moved.MOVED if not name.endswith("__main__")])
def test_an_old_name_is_the_module_of_the_new_one_and_warns(old, forgotten):
    new = _moved.MOVED[old]
    with pytest.warns(DeprecationWarning, match=rf"^spinbook\.{old} is {new} now; the old name goes"):
        found = pkgutil.resolve_name(f"spinbook.{old}")
    assert found is pkgutil.resolve_name(new)
    if isinstance(found, ModuleType):
        assert found.__name__ == found.__spec__.name == new


def test_parts_of_a_package_that_moved_are_not_loaded_twice(forgotten):
    with pytest.warns(DeprecationWarning, match=r"spinbook\.comparison\.tasks is experiments\.comparison\.tasks now"):
        from spinbook.comparison.tasks import Task
    with pytest.warns(DeprecationWarning, match=r"spinbook\.plot is chapters now"):
        from spinbook.plot import adaptive_tap
    from chapters import adaptive_tap as drawn
    from experiments.comparison import tasks

    assert Task is tasks.Task
    assert adaptive_tap is drawn


def test_the_warning_is_of_the_line_that_imports(forgotten):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import spinbook.digits  # noqa: F401
    assert [one.filename for one in caught] == [__file__]


def test_what_was_pickled_under_an_old_name_can_be_read(forgotten):
    from experiments.vector.one_step import Case

    case = Case(0, 1.0, 8)
    old = pickle.dumps(case, 0).replace(b"experiments.vector.one_step", b"spinbook.vector.one_step")
    with pytest.warns(DeprecationWarning, match="one_step"):
        assert pickle.loads(old) == case


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["plots", "comparison.none", "plot.none"])
def test_a_name_that_never_was_is_not_found(name, forgotten):
    with pytest.raises(ModuleNotFoundError, match=rf"No module named 'spinbook\.{name}'"):
        importlib.import_module(f"spinbook.{name}")


@pytest.mark.parametrize("old", _moved.GONE)
def test_a_name_that_is_gone_says_what_to_do_instead(old, forgotten):
    module, _, name = f"spinbook.{old}".rpartition(".")
    message = rf"^{module}\.{name} is gone: {re.escape(_moved.GONE[old])}$"
    if old in ("self_attention.scan", "vector.reference"):
        with pytest.raises(ModuleNotFoundError, match=message):
            importlib.import_module(f"{module}.{name}")
    else:
        with pytest.raises(AttributeError, match=message):
            getattr(importlib.import_module(module), name)
    assert not hasattr(importlib.import_module(module), "nothing")


@pytest.mark.parametrize("command", ["comparison", "sweep"])
def test_a_command_works_by_its_old_name(command, tmp_path):
    run = [sys.executable, "-W", "always", "-m", f"spinbook.{command}", "--help"]
    shown = subprocess.run(run, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "usage: python -m experiments" in shown.stdout
    assert f"spinbook.{command}.__main__ is experiments." in shown.stderr
