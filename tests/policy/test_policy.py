"""The policy of every public function: a finite result, an error that names the argument, or evidence of failure.

The inputs are in ``fuzz``, the functions in ``registry``. The fast tests take five of the bad inputs of each function,
the slow ones hundreds, with numbers of any size.
"""

import pkgutil
import re
import sys

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.policy import fuzz, registry

SETTINGS = {"deadline": None, "derandomize": True, "database": None, "suppress_health_check": list(HealthCheck)}


def test_every_public_function_has_an_entry():
    names = registry.public_names()
    # A class is covered by its methods.
    covered = {*registry.CASES, *(name.rpartition(".")[0] for name in registry.CLASSES)}
    missing = [name for name in names if name not in covered and not registry.is_exempt(name)]
    assert not missing, f"no entry in tests/policy/registry.py for {missing}"
    assert len(names) > 300


def exists(name, names):
    """Whether it is public, or a method of what is public, of a record too."""
    owner, _, method = name.rpartition(".")
    module, _, record = owner.rpartition(".")
    found = getattr(sys.modules.get(module), record, None)
    return name in names or owner in names or callable(getattr(found, method, None))


def test_no_entry_and_no_exemption_is_left_over():
    names = set(registry.public_names())
    assert not [name for name in registry.CASES if not exists(name, names)]
    assert not [name for name in registry.CASES if registry.is_exempt(name) and name not in registry.CLASSES]
    unused = [name for name in registry.EXEMPT if not any(f"{x}.".startswith(f"{name}.") for x in names)]
    assert unused == []


# What is computed more often than refused has to be compiled first: it is left to the slow tests, with other dtypes.
COMPUTED = {
    "bool", "fewer axes", "integers", "list", "masked, nothing", "negative", "one", "one huge", "tiny", "zero",
    "long double", "big endian", fuzz.TRACED,
}  # fmt: skip


def _judge(name, choice):
    argument, label = choice
    kind, words = fuzz.judge(registry.CASES[name], argument, label)
    assert kind in fuzz.ALLOWED, f"{name} with {argument} = {label}: {kind} ({words})"


@pytest.mark.parametrize("name", (name for name, case in registry.CASES.items() if fuzz.choices(case)))
def test_bad_input_is_neither_silent_nor_unclear(name):
    options = fuzz.choices(registry.CASES[name])
    quick = [choice for choice in options if choice[1] not in COMPUTED and "float" not in choice[1]] or options

    @settings(max_examples=5, **SETTINGS)
    @given(st.sampled_from(quick))
    def run(choice):
        _judge(name, choice)

    run()


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.CASES)
def test_any_bad_input_is_neither_silent_nor_unclear(name):
    for choice in fuzz.choices(registry.CASES[name]):
        _judge(name, choice)


def _numbers(case):
    return [k for k, v in case.arguments.items() if not isinstance(v, (registry.Opaque, int, str))]


@pytest.mark.slow
@pytest.mark.parametrize("name", (name for name, case in registry.CASES.items() if _numbers(case)))
def test_numbers_of_any_size_are_neither_silent_nor_unclear(name):
    case, numbers = registry.CASES[name], _numbers(registry.CASES[name])
    dtypes = {"float16": (-7, 4), "float32": (-45, 38), "float64": (-320, 308)}

    @settings(max_examples=40, **SETTINGS)
    @given(st.sampled_from(numbers), st.sampled_from(sorted(dtypes)), st.floats(0, 1), st.booleans())
    def run(argument, dtype, exponent, negative):
        low, high = dtypes[dtype]
        size = 10.0 ** round(low + exponent * (high - low)) * (-1 if negative else 1)
        good = np.asarray(case.arguments[argument], np.float64)
        with np.errstate(all="ignore"):
            value = np.full_like(good, size).astype(dtype)
        kind, words = fuzz.judge(case, argument, "", replacement=value)
        assert kind in fuzz.ALLOWED, f"{name} with {argument} = {size:g} in {dtype}: {kind} ({words})"

    run()


# What has numbers of its own, or says in its docstring that it computes in double precision.
DOUBLE = (
    "spinbook.free_energy.model", "spinbook.lens", "spinbook.lyapunov", "spinbook.self_attention",
    "spinbook.spin_transformer.SpinTransformer", "spinbook.entropy_production.relaxation.contraction_factor",
    "spinbook.vector.mean_field.collective_mode",
)  # fmt: skip
SINGLE = [name for name in registry.CASES if name.startswith("spinbook.") and not name.startswith(DOUBLE)]


def _arrays(name):
    good = fuzz.good(registry.CASES[name])
    return {k: v.astype(np.float32) for k, v in good.items() if isinstance(v, np.ndarray) and v.dtype == float}


@pytest.mark.parametrize("name", filter(_arrays, SINGLE))
def test_single_precision_in_gives_single_precision_out(name):
    case, good, arrays = registry.CASES[name], fuzz.good(registry.CASES[name]), _arrays(name)

    def call(**arrays):
        result = case.function(**good | arrays)
        # A prior is not a number, and holds one.
        result = getattr(result, "covariance", result)
        return jax.tree.map(lambda leaf: leaf if hasattr(leaf, "dtype") else None, result)

    # A trace compiles nothing; PyTorch, and what looks at values, has none.
    in_torch = name.startswith(("spinbook.adaptive_tap", "spinbook.free_energy"))
    leaves = jax.tree.leaves(call(**arrays) if in_torch else jax.eval_shape(call, **arrays))
    floats = {str(leaf.dtype).removeprefix("torch.") for leaf in leaves if "float" in str(leaf.dtype)}
    assert floats == {"float32"}


def test_what_is_exempt_because_it_says_so_says_so():
    def says(name):
        found = pkgutil.resolve_name(name)
        home = sys.modules.get(getattr(found, "__module__", ""))
        words = f"{found.__doc__} {home.__doc__ if home else ''}"
        return re.search("without checks|not checked|Nothing (here checks|is checked)", " ".join(words.split()))

    unsaid = [name for name, why in registry.EXEMPT.items() if why == registry.UNCHECKED and not says(name)]
    assert unsaid == []
