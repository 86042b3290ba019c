"""Ask which values PyTorch's transformations leave known, and solve in full precision under its modes.

While ``torch.compile`` or ``torch.export`` traces, and under ``torch.vmap``, values are unknown: the program cannot
depend on them, errors cannot be raised, and an answer that does not exist becomes NaN, as under JAX's ``jit``. Under
``torch.autocast`` products are made in half precision, in which the equations of this library cannot be solved.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor, nn

__all__ = [
    "at_least_single",
    "decided",
    "differentiating",
    "full_precision",
    "holds",
    "in_single_precision",
    "known",
    "recordable",
    "uncompiled",
]

P = ParamSpec("P")
T = TypeVar("T")


def known(condition: Tensor) -> bool | None:
    """Whether all entries are true; None where a transformation hides them.

    >>> known(torch.tensor([True, False]))
    False
    >>> torch.vmap(lambda x: x + (known(x > 0) is None))(torch.zeros(2))
    tensor([1., 1.])
    """
    if torch.compiler.is_compiling():
        return None
    try:
        return bool(condition.all())
    except RuntimeError:
        # Under vmap there is no single answer, and PyTorch raises.
        return None


def holds(condition: Tensor) -> bool:
    """Whether all entries are true; true where a transformation hides them.

    >>> holds(torch.tensor([True, False]))
    False
    """
    return known(condition) is not False


def at_least_single(dtype: torch.dtype) -> torch.dtype:
    """The dtype to solve in: float32 for half precision, and otherwise the dtype itself.

    >>> at_least_single(torch.bfloat16), at_least_single(torch.float64)
    (torch.float32, torch.float64)
    """
    return torch.promote_types(dtype, torch.float32)


def _autocasts(device: str) -> bool:
    try:
        return torch.is_autocast_enabled(device)
    except RuntimeError:
        # A device without autocast, such as meta.
        return False


def _device(args: tuple[object, ...]) -> str:
    for value in args:
        if isinstance(value, Tensor):
            return value.device.type
    for value in args:
        if isinstance(value, nn.Module):
            for state in (*value.parameters(), *value.buffers()):
                return state.device.type
    return "cpu"


def full_precision(function: Callable[P, T]) -> Callable[P, T]:
    """The function with ``torch.autocast`` off, on the device of its first tensor or of a module's parameters.

    >>> one = torch.ones(2, 2)
    >>> with torch.autocast("cpu", torch.bfloat16):
    ...     torch.mm(one, one).dtype, full_precision(torch.mm)(one, one).dtype
    (torch.bfloat16, torch.float32)
    """

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> T:
        device = _device(args)
        if not _autocasts(device):
            return function(*args, **options)
        with torch.autocast(device, enabled=False):
            return function(*args, **options)

    return call


class _Method(nn.Module):
    """One method of a module as a module, which is what ``functional_call`` calls."""

    def __init__(self, owner: nn.Module, method: Callable[..., Any]) -> None:
        super().__init__()
        self.owner, self.method = owner, method

    def forward(self, *args: Any, **options: Any) -> Any:
        return self.method(self.owner, *args, **options)


def in_single_precision(module: nn.Module, method: Callable[..., T], *args: Tensor) -> T:
    """``method(module, *args)`` with all arguments, parameters and buffers of half precision made float32.

    Gradients reach the parameters through the conversion.

    >>> in_single_precision(nn.Linear(2, 2).bfloat16(), nn.Linear.forward, torch.ones(1, 2).bfloat16()).dtype
    torch.float32
    """

    def single(value: Tensor) -> Tensor:
        return value.to(at_least_single(value.dtype)) if value.is_floating_point() else value

    states = [*module.named_parameters(), *module.named_buffers()]
    converted = {f"owner.{name}": single(value) for name, value in states}
    out: T = torch.func.functional_call(_Method(module, method), converted, tuple(single(a) for a in args))
    return out


def recordable(value: Any) -> Any:
    """The value; of a tensor made under ``torch.inference_mode``, a copy with which derivatives can be recorded.

    >>> with torch.inference_mode():
    ...     made = torch.ones(2)
    >>> made.is_inference(), recordable(made).is_inference()
    (True, False)
    """
    if torch.compiler.is_compiling() or torch.is_inference_mode_enabled():
        return value
    return value.clone() if isinstance(value, Tensor) and value.is_inference() else value


def differentiating(function: Callable[P, T]) -> Callable[P, T]:
    """The function, or method of a module, which differentiates inside, also under ``torch.inference_mode``.

    There nothing is recorded, and derivatives would be refused or zero.

    >>> def slope(x):
    ...     with torch.enable_grad():
    ...         x = x.detach().requires_grad_()
    ...         return torch.autograd.grad((x**2).sum(), x)[0]
    >>> with torch.inference_mode():
    ...     differentiating(slope)(torch.ones(2))
    tensor([2., 2.])
    """

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> T:
        if torch.compiler.is_compiling() or not torch.is_inference_mode_enabled():
            return function(*args, **options)
        with torch.inference_mode(False), torch.no_grad():
            first, *rest = (recordable(value) for value in args)
            options = {name: recordable(value) for name, value in options.items()}  # type: ignore[assignment]
            if not isinstance(first, nn.Module):
                return function(first, *rest, **options)
            states = {**dict(first.named_parameters()), **dict(first.named_buffers())}
            converted = {f"owner.{name}": recordable(value) for name, value in states.items()}
            out: T = torch.func.functional_call(_Method(first, function), converted, tuple(rest), options)
            return out

    return call


def _undecided(what: str) -> str:
    return (
        f"{what} takes a number of steps that depends on values, which torch.vmap, torch.export and "
        "torch.compile(fullgraph=True) hide: batches go into the leading axes, and torch.compile without fullgraph "
        "runs the steps between its graphs"
    )


def uncompiled(function: Callable[P, T]) -> Callable[P, T]:
    """The function, run as it is between the graphs of ``torch.compile``; ``RuntimeError`` under ``torch.export``.

    For loops that run until convergence: a trace would be cut at every decision.

    >>> uncompiled(torch.neg)(torch.ones(1))
    tensor([-1.])
    """

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> T:
        if not torch.compiler.is_compiling():
            return function(*args, **options)
        if not torch.compiler.is_dynamo_compiling():
            raise RuntimeError(_undecided(function.__qualname__))
        # Disabling it in advance would import the compiler, which takes seconds, even for users who do not compile.
        out: T = torch.compiler.disable(function)(*args, **options)
        return out

    return call


def decided(condition: Tensor, what: str) -> bool:
    """Whether all entries are true, for a loop that goes on until they are; ``RuntimeError`` where values are hidden.

    >>> decided(torch.tensor([True, False]), "a fixed point")
    False
    """
    verdict = known(condition)
    if verdict is None:
        raise RuntimeError(_undecided(what))
    return verdict
