"""Finds rivals that are numbers written down, or such numbers times the value: no code could make them right or wrong.

Expressions of a page are computed with random numbers in the place of what its calls give, three times. A rival that is
the same each time is a constant, and one whose ratio to the value, or difference, is the same tells nothing that the
value does not tell.
"""

from __future__ import annotations

import ast
import math
import operator
import random
from collections import Counter
from collections.abc import Iterable, Iterator

from companion.declaring import calls, scopes

_DRAWS = 3
_MATHEMATICS = {"math", "numpy", "scipy"}
"""Packages whose functions give the same for the same numbers, unless they are random."""
_BUILTIN = {"abs", "float", "int", "len", "max", "min", "range", "round", "sorted", "sum"}
_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_Numbers = tuple[float, ...]


def written_down(cells: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Id and fault of claims whose rival is a constant, a multiple of the value or the value and a number.

    As far as expressions of the page tell: what a function makes of its arguments is not looked into.

    >>> page = ["one = measured(1)", "claims.measure('a.b', one, rival=one / 2)", "claims.measure('a.c', one, rival=2)"]
    >>> list(written_down(page))
    [('a.b', 'a multiple of the value'), ('a.c', 'a constant')]
    """
    page = _Page()
    for cell in cells:
        for statement in calls.parsed(cell):
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "claims.measure":
                yield from page.measured(call)
            page.follow(statement)


class _Page:
    """What the names of a page stand for so far; of what no expression tells, random numbers."""

    def __init__(self) -> None:
        self._known: dict[str, _Numbers] = {}
        self._given: Counter[str] = Counter()
        """How often a name has been given, so that what is computed from it later is something else."""
        self._scope: dict[str, str] = {}

    def measured(self, call: ast.Call) -> Iterator[tuple[str, str]]:
        named = {one.arg: one.value for one in call.keywords if one.arg}
        id = call.args[0] if call.args else named.get("id")
        value = call.args[1] if len(call.args) > 1 else named.get("value")
        rival = named.get("rival")
        if not isinstance(id, ast.Constant) or value is None or rival is None:
            return
        right = self._numbers(value)
        wrong = self._numbers(rival.elts[0] if isinstance(rival, ast.Tuple) else rival)
        if _same(wrong):
            yield str(id.value), "a constant"
        elif 0 not in right and _same(b / a for a, b in zip(right, wrong, strict=True)):
            yield str(id.value), "a multiple of the value"
        elif _same(b - a for a, b in zip(right, wrong, strict=True)):
            yield str(id.value), "the value and a number"

    def follow(self, statement: ast.stmt) -> None:
        """What a statement makes of the names that it gives."""
        new: dict[str, _Numbers] = {}
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, given = statement.targets[0], statement.value
            pairs = [(target, given)]
            if isinstance(target, ast.Tuple) and isinstance(given, ast.Tuple) and len(target.elts) == len(given.elts):
                pairs = list(zip(target.elts, given.elts, strict=True))
            new = {one.id: self._numbers(value) for one, value in pairs if isinstance(one, ast.Name)}
        for part in ast.walk(statement):
            if isinstance(part, ast.Import | ast.ImportFrom):
                self._scope |= scopes.bound(part)
        for name in calls.given_by(statement):
            self._known.pop(name, None)
            self._given[name] += 1
        self._known |= new

    def _numbers(self, node: ast.expr) -> _Numbers:
        try:
            return self._computed(node)
        except (ArithmeticError, ValueError, TypeError):
            return self._drawn(ast.unparse(node))

    def _computed(self, node: ast.expr) -> _Numbers:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return (float(node.value),) * _DRAWS
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            pairs = zip(self._numbers(node.left), self._numbers(node.right), strict=True)
            return tuple(float(_BINARY[type(node.op)](a, b)) for a, b in pairs)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return tuple(-number for number in self._numbers(node.operand))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "float" and len(node.args) == 1:
            return self._numbers(node.args[0])
        if isinstance(node, ast.Name) and node.id in self._known:
            return self._known[node.id]
        return self._drawn(ast.unparse(node), is_constant=self._is_constant(node))

    def _is_constant(self, node: ast.expr) -> bool:
        """Whether mathematics alone, and constants, are behind an expression."""
        if isinstance(node, ast.Name) or "random" in ast.unparse(node):
            return False
        names = {name.id for name in scopes.names_in(node)} - scopes.stored([node])
        return all(
            self._scope.get(name, "").partition(".")[0] in _MATHEMATICS
            or (name in _BUILTIN and name not in self._known)
            or (name in self._known and _same(self._known[name]))
            for name in names
        )

    def _drawn(self, text: str, *, is_constant: bool = False) -> _Numbers:
        """Random numbers of an expression, the same until a name in it stands for something else."""
        names = sorted({name.id for name in scopes.names_in(ast.parse(text))})
        draw = random.Random(f"{text} {[self._given[name] for name in names]}")
        numbers = [draw.uniform(1, 2) for _ in range(_DRAWS)]
        return (numbers[0],) * _DRAWS if is_constant else tuple(numbers)


def _same(numbers: Iterable[float]) -> bool:
    first, *rest = numbers
    return all(math.isclose(first, one, rel_tol=1e-9) for one in rest)
