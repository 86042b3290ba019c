"""What makes two sweeps the same: equal for the same function, tasks and code, different for anything else."""

import dataclasses
import enum
import functools
import subprocess
import sys
import types
from pathlib import Path

import jax
import numpy as np
import pytest

from spinbook import sweep
from spinbook.sweep.identity import derived
from tests.sweep import tasks as work
from tests.sweep.tasks import Task


def test_fingerprints_tell_apart_what_differs_and_nothing_else():
    values = [
        1, 1.0, np.float32(1.0), True, "1", None, [1], [[1]], [1, 1], {"a": 1}, {"b": 1}, ["a", 1],
        np.ones(2), np.ones((1, 2)), np.ones((2, 1)), np.ones(2, np.float32), "", [], ["ab", "c"], ["a", "bc"],
    ]  # fmt: skip
    prints = [sweep.fingerprint(value) for value in values]
    # {"a": 1} is the list of its items, by definition.
    assert sum(prints.count(p) > 1 for p in prints) == 2
    assert prints[values.index({"a": 1})] == sweep.fingerprint(["a", 1])
    assert sweep.fingerprint({"a": 1, "b": 2}) == sweep.fingerprint({"b": 2, "a": 1})
    assert sweep.fingerprint(1, 2) != sweep.fingerprint(12)
    for value in (object(), np.ma.masked_less([1.0, 2.0], 1.5)):
        with pytest.raises(ValueError, match="values: expected arrays, numbers and strings, got"):
            sweep.fingerprint(value)


@dataclasses.dataclass(frozen=True)
class Power:
    exponent: int

    def __call__(self, x):
        return {"x": np.power(x, self.exponent)}


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return {"x": self.factor * x}

    def method(self, x):
        return self(x)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def closing_over(y):
    return lambda x: {"x": x + y}


def defaulting(y):
    def function(x, y=y):
        return {"x": x + y}

    return function


FUNCTIONS = [
    work.draw,
    lambda x: {"x": x + 1},
    lambda x: {"x": x + 2},
    lambda x: {"x": x - 1},
    closing_over(1),
    closing_over(2),
    closing_over(np.ones(2)),
    defaulting(1),
    defaulting(2),
    functools.partial(work.draw, 1),
    functools.partial(work.draw, 2),
    Power(2),
    Power(3),
    Scale(2.0),
    Scale(3.0),
    Scale(2.0).method,
    Scale(3.0).method,
    functools.cache(work.draw),
    jax.jit(jax.numpy.sin),
    np.sin,
    np.cos,
    abs,
    len,
]


def test_every_function_has_its_own_identity():
    prints = [derived(function, [1])["function"] for function in FUNCTIONS]
    assert len(set(prints)) == len(FUNCTIONS)
    again = [derived(closing_over(1), [1]), derived(Power(2), [1]), derived(Scale(2.0), [1])]
    assert [prints[4], prints[11], prints[13]] == [one["function"] for one in again]


TASKS = [
    1, 1.0, True, "1", b"1", None, 2**80, (1,), [1], {1}, {1: 2}, {2: 1}, range(3), Path("x"), Colour.RED, Colour.BLUE,
    Task(1), Task(2), Power(1), np.ones(2), jax.numpy.ones(2, "float32"), jax.random.key(1), jax.random.key(2), 1j,
]  # fmt: skip


def test_every_task_counts_and_so_does_its_order():
    prints = [derived(abs, [task])["tasks"] for task in TASKS]
    assert len(set(prints)) == len(TASKS)
    assert derived(abs, [1, 2])["tasks"] != derived(abs, [2, 1])["tasks"]
    assert derived(abs, [{1: 2, "a": 3}])["tasks"] == derived(abs, [{"a": 3, 1: 2}])["tasks"]


def test_the_default_identity_refuses_other_tasks_and_another_function(tmp_path):
    first = sweep.run(Power(2), [1, 2, 3], folder=tmp_path)
    for function, tasks, differs in (
        (Power(2), [7, 8, 9], "identity, tasks"),
        (Power(3), [1, 2, 3], "function, identity"),
    ):
        with pytest.raises(ValueError, match=f"got another sweep .*differs in {differs}.$"):
            sweep.run(function, tasks, folder=tmp_path)
    assert sweep.run(Power(2), [1, 2, 3], folder=tmp_path) == first


def test_an_edit_of_the_module_or_of_one_that_it_draws_on_is_another_sweep(tmp_path, monkeypatch):
    package = tmp_path / "edited"
    package.mkdir()
    sources = {
        "__init__": "",
        "main": "from edited import near\nfrom edited.near import helper\n\ndef f(x):\n    return helper(x)\n",
        "near": "from edited.far import constant\n\ndef helper(x):\n    return {'x': constant() * x}\n",
        "far": "from another_package import number\n\ndef constant():\n    return number()\n",
        "../another_package": "def number():\n    return 2\n",
        "unrelated": "number = 1\n",
    }
    monkeypatch.syspath_prepend(str(tmp_path))

    def identity():
        for name in [name for name in sys.modules if name.partition(".")[0] in ("edited", "another_package")]:
            monkeypatch.delitem(sys.modules, name)
        import edited.main
        import edited.unrelated

        return derived(edited.main.f, [1]), sweep.code_version(edited.main.f)

    def write(name):
        (package / f"{name}.py").write_text(sources[name])

    for name in sources:
        write(name)
    original = identity()
    assert identity() == original
    changes = {"main": False, "near": False, "far": False, "../another_package": False, "unrelated": True}
    for name, same in changes.items():
        (package / f"{name}.py").write_text(sources[name] + "# more\n")
        changed = identity()
        assert (changed[0]["code"] == original[0]["code"]) == same, name
        assert (changed[1] == original[1]) == same, name
        write(name)


def test_functions_of_a_notebook_are_told_apart_by_what_they_use():
    def notebook(source):
        module = types.ModuleType("a_notebook")
        exec(source, module.__dict__)
        return derived(module.f, [1])["function"]

    source = "factor = 2\ndef g(x): return factor * x\ndef f(x): return {'x': g(x)}\nother = 1\n"
    assert notebook(source) == notebook(source)
    assert notebook(source) == notebook(source.replace("other = 1", "other = 2"))
    assert notebook(source) != notebook(source.replace("factor = 2", "factor = 3"))
    assert notebook(source) != notebook(source.replace("factor * x", "factor + x"))


def test_what_cannot_be_described_asks_for_an_identity(tmp_path):
    loop = []
    loop.append(loop)
    for function, tasks, message in (
        (abs, [object()], "tasks cannot be described, got a builtins.object"),
        (abs, [loop], "tasks cannot be described, got a list that contains itself"),
        (closing_over(iter("abc")), [1], "function cannot be described, got a builtins.str"),
    ):
        with pytest.raises(ValueError, match=f"identity: expected one, because {message}"):
            sweep.iterate(function, tasks, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert len(sweep.run(lambda x: {"x": 1}, [object()], folder=tmp_path, identity="mine")) == 1


@pytest.mark.slow
def test_another_process_finds_the_same_identity():
    code = (
        "from tests.sweep.tasks import draw, Task; from spinbook.sweep.identity import derived; import numpy as np; "
        "print(derived(draw, [Task(1), {'b', 'a', 'c'}, np.ones(2)]))"
    )
    root = Path(__file__).resolve().parents[2]
    shown = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True).stdout
    assert shown.strip() == str(derived(work.draw, [Task(1), {"b", "a", "c"}, np.ones(2)]))
