"""Finds which definition uses which, from the syntax trees of a package, of its tests and of pages, without imports.

A name is followed through imports and second names to where it is defined. A test uses what stands in its body, in its
decorators, in the fixtures whose names are its arguments, and in helpers of the tests that any of these use. Handing a
function on counts as calling it, as in ``vmap(f)`` or in a table of cases; annotations and ``isinstance`` do not.
A method counts as called where its class is used and an attribute of that name is read.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from companion.declaring import notebooks, scopes

_MACHINERY = __package__.partition(".")[0]
_TESTS = "tests"
_NO_CALL = ("isinstance", "issubclass")
"""Functions that are given a class without calling it."""
_OUTPUT = ("print", "display", "glue", "Markdown", "HTML")
"""Functions that leave what they are given as it is, whatever they are imported from."""

_GENERATORS = ("default_rng", "Generator", "RandomState", "manual_seed")
"""What makes generators of random numbers that have a state."""


@dataclass(frozen=True)
class Definition:
    """One name of a module: its place, and what it uses, as written (``names``) and as attributes of anything.

    ``texts`` are the texts in its code, its docstring among them; ``called`` says whether it is a function or a class.
    """

    name: str
    path: Path
    line: int
    names: frozenset[str]
    attributes: frozenset[str]
    texts: frozenset[str]
    called: bool
    is_fixture: bool


@dataclass(frozen=True)
class Reached:
    """What was reached from somewhere: names of definitions, and the attributes that were read on the way."""

    names: frozenset[str]
    attributes: frozenset[str]

    def calls(self, name: str) -> bool:
        """Whether a function, a class or a method of a class is among what was reached."""
        owner, _, member = name.rpartition(".")
        return name in self.names or (owner in self.names and (member in self.attributes or member == "__call__"))


class Code:
    """All modules of a repository's packages and of its tests, by dotted name; tests begin with ``tests``."""

    def __init__(self, root: Path, packages: Sequence[str]) -> None:
        self.packages = packages
        places = {package: root / "src" / package for package in packages}
        self._modules = scopes.Modules(places | {_TESTS: root / _TESTS})
        self._definitions = {one.name: one for module in self._modules.values() for one in _definitions(module)}

    def definition(self, name: str) -> Definition | None:
        """The definition of a dotted name, which may be a second name; of a method that of its class."""
        home = self._fixture(*name.split()[1:]) if name.startswith("fixture ") else self._modules.home(name)
        return self._definitions.get(home or "")

    def resolve(self, name: str) -> str | None:
        """Where what a dotted name stands for is defined; None for a module, and for what is of another package."""
        definition = self.definition(name)
        return definition.name if definition else None

    def at(self, path: Path, line: int) -> str | None:
        """The definition that a line of a file belongs to: the last one that begins there or before."""
        before = [one for one in self._definitions.values() if one.path == path and one.line <= line]
        return max(before, key=lambda one: one.line).name if before else None

    def _fixture(self, module: str, name: str) -> str | None:
        """The fixture that a test of a module is given under a name: its own, or that of the nearest folder."""
        places = [module]
        while "." in module:
            module = module.rpartition(".")[0]
            places.append(f"{module}.conftest")
        known = (self._definitions.get(f"{place}.{name}") for place in places)
        return next((one.name for one in known if one and one.is_fixture), None)

    def naming(self, text: str) -> frozenset[str]:
        """The functions and classes of the packages in whose code a text stands, or a constant that holds it."""
        every = [one for one in self._definitions.values() if one.name.partition(".")[0] in self.packages]
        constants = {one.name for one in every if text in one.texts and not one.called}
        return frozenset(
            one.name
            for one in every
            if one.called and (text in one.texts or any(self.resolve(name) in constants for name in one.names))
        )

    def tests(self) -> Iterator[Definition]:
        """Every test function."""
        for definition in self._definitions.values():
            module, _, local = definition.name.rpartition(".")
            package, _, file = module.rpartition(".")
            if package.partition(".")[0] == _TESTS and file.startswith("test_") and local.startswith("test_"):
                yield definition

    def called(self, test: Definition) -> Reached:
        """What of the packages a test calls itself, through helpers and fixtures of the tests, but not further."""
        return self.reached(test.names, test.attributes, inside=_TESTS)

    def reached(self, names: Iterable[str], attributes: Iterable[str] = (), *, inside: str = "") -> Reached:
        """Definitions of the packages behind names, and behind those, as long as they lie in the package ``inside``."""
        found, seen, read = set(), set(), set(attributes)
        waiting = list(names)
        while waiting:
            definition = self.definition(waiting.pop())
            if definition is None or definition.name in seen:
                continue
            seen.add(definition.name)
            base = definition.name.partition(".")[0]
            if base in self.packages:
                found.add(definition.name)
            if not inside or base == inside:
                waiting += definition.names
                read |= definition.attributes
        return Reached(frozenset(found), frozenset(read))


def _definitions(module: scopes.Module) -> Iterator[Definition]:
    scope = module.imports | {local: f"{module.name}.{local}" for local in module.definitions}
    for local, nodes in module.definitions.items():
        reader = _Reader(package=module.above)
        for node in nodes:
            reader.read(node, scope)
        functions = [node for node in nodes if isinstance(node, scopes.FUNCTIONS)]
        names = set(reader.names)
        if module.name.partition(".")[0] == _TESTS:
            asked = (argument.arg for node in functions for argument in scopes.arguments_of(node))
            names |= {f"fixture {module.name} {argument}" for argument in asked}
        constants = (part.value for node in nodes for part in ast.walk(node) if isinstance(part, ast.Constant))
        yield Definition(
            name=f"{module.name}.{local}",
            path=module.path,
            line=nodes[0].lineno,
            names=frozenset(names),
            attributes=frozenset(reader.attributes),
            texts=frozenset(value for value in constants if isinstance(value, str)),
            called=bool(functions) or any(isinstance(node, ast.ClassDef) for node in nodes),
            is_fixture=any("fixture" in ast.unparse(one) for node in functions for one in node.decorator_list),
        )


class _Reader(scopes.Reader):
    """Notes what is called or handed on."""

    def read(self, node: ast.AST, scope: Mapping[str, str]) -> None:
        """Visit a statement before which names stand for what ``scope`` says."""
        self.bound = dict(scope)
        self.visit(node)

    @property
    def names(self) -> frozenset[str]:
        """The dotted names that are used."""
        return frozenset(dotted for _, dotted in self.used)

    def visit_Call(self, node: ast.Call) -> None:
        if not (isinstance(node.func, ast.Name) and node.func.id in _NO_CALL):
            self.generic_visit(node)

    def annotation(self, node: ast.expr) -> None:
        """An annotation calls nothing."""


@dataclass(frozen=True)
class _Step:
    """One statement of a notebook: the names that it needs and gives, and what imported names stood for there."""

    node: ast.stmt
    scope: Mapping[str, str]
    names: frozenset[str]
    """What it needs as it is written."""
    needs: frozenset[str]
    """And what the functions need that it names, which look up their names when they are called."""
    gives: frozenset[str]
    replaces: frozenset[str]
    """The names of these that stood for something else before, which is gone."""
    inside: Mapping[str, frozenset[str]]
    """What the bodies of the page's functions need, of those that are defined by then."""


class Notebook:
    """The code of one page as statements in their order, so that one can ask what a call in it rests on."""

    def __init__(self, cells: Iterable[str]) -> None:
        self._steps: list[_Step] = []
        self._calls: dict[tuple[str, str], tuple[int, ast.Call]] = {}
        scope: dict[str, str] = {}
        inside: dict[str, frozenset[str]] = {}
        for node in (node for cell in cells for node in parsed(cell)):
            needs, gives = _needs_and_gives(node)
            inside = {name: body for name, body in inside.items() if name not in gives}
            scope = {name: dotted for name, dotted in scope.items() if name not in gives}
            for part in ast.walk(node):
                if isinstance(part, ast.Import | ast.ImportFrom):
                    scope = scope | scopes.bound(part)
                if isinstance(part, ast.Call) and part.args and isinstance(part.args[0], ast.Constant):
                    key = (ast.unparse(part.func), str(part.args[0].value))
                    self._calls.setdefault(key, (len(self._steps), part))
            replaces = frozenset[str]()
            if isinstance(node, (*scopes.FUNCTIONS, ast.ClassDef)):
                replaces = frozenset({node.name})
            elif isinstance(node, ast.Assign) and not any(map(scopes.changed, node.targets)):
                replaces = gives
            names = needs - set(scope)
            if isinstance(node, scopes.FUNCTIONS):
                inside = inside | {node.name: names}
                # The others are looked up when it is called.
                names &= {name.id for name in scopes.names_in(*scopes.at_once(node))}
            self._steps.append(_Step(node, scope, names, _with_bodies(names, inside), gives, replaces, inside))

    def behind(self, call: str, first: str) -> Reached | None:
        """The dotted names that a call rests on; None where no statement has it.

        ``call`` is its function as it is written, ``first`` its first argument, a text. It rests on its own names, and
        from there backwards on every statement that gives a name that is needed, or may change what one stands for.
        """
        if (call, first) not in self._calls:
            return None
        _, reader = self._follow(call, first)
        return Reached(reader.names, frozenset(reader.attributes))

    def alone(self, call: str, firsts: Iterable[str]) -> list[str]:
        """The statements that these calls need and they themselves, in the order of the page, as code.

        With every import, with what is set for a whole package, as in ``package.config.update("x", True)``, and with
        everything that draws from a random generator before; without what only shows or records.
        """
        drawn_from = {name for step in self._steps if _makes_generator(step.node) for name in step.gives}
        imports = ast.Import | ast.ImportFrom
        places = {index for index, step in enumerate(self._steps) if isinstance(step.node, imports) or _sets(step)}
        for first in firsts:
            if (call, first) in self._calls:
                places |= self._follow(call, first, drawn_from)[0]
        return [ast.unparse(self._steps[place].node) for place in sorted(places)]

    def _follow(self, call: str, first: str, drawn_from: Collection[str] = ()) -> tuple[set[int], _Reader]:
        """The places of the statements behind a call, and its own, and what has read them.

        Using one of ``drawn_from`` changes it.
        """
        place, found = self._calls[call, first]
        step, places, reader = self._steps[place], {place}, _Reader()
        # A call that is a statement stands for itself; in a loop or a condition it needs all of that.
        alone = isinstance(step.node, ast.Expr)
        reader.read(found if alone else step.node, step.scope)
        own = _needs_and_gives(ast.Expr(found))[0] - set(step.scope)
        needed = set(_with_bodies(own, step.inside)) | (set() if alone else step.needs)
        for index in range(place - 1, -1, -1):
            step = self._steps[index]
            drawn = step.needs & needed & set(drawn_from)
            if not (drawn or step.gives & needed or (step.names & needed and _changes(step))):
                continue
            needed -= step.replaces
            reader.read(step.node, step.scope)
            needed |= step.needs
            places.add(index)
        return places, reader


def _makes_generator(node: ast.stmt) -> bool:
    """Whether a statement makes an object that every use leaves in another state, as random numbers come from.

    A function that makes one makes it anew in every call.
    """
    if isinstance(node, scopes.FUNCTIONS):
        return False
    called = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(ast.unparse(one).rpartition(".")[2] in _GENERATORS for one in called)


def _sets(step: _Step) -> bool:
    """Whether a statement calls something of an imported package and has nothing of the page in it."""
    return _changes(step) and not step.names and not step.gives


def _with_bodies(names: Iterable[str], inside: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Names, and what the bodies of the functions among them need, and of those that these need in turn."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += inside.get(name, ())
    return frozenset(found)


def _needs_and_gives(node: ast.stmt) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a statement takes from what was before, and those that it gives or whose contents it changes."""
    table = symtable.symtable(ast.unparse(ast.fix_missing_locations(node)), "cell", "exec")
    needs, waiting = set(), [table]
    while waiting:
        scope = waiting.pop()
        waiting += scope.get_children()
        needs |= {
            one.get_name() for one in scope.get_symbols() if one.is_referenced() and (scope is table or one.is_global())
        }
    gives = {one.get_name() for one in table.get_symbols() if one.is_assigned()}
    inner: set[str] = set()
    changed: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.For):
            inner |= scopes.stored([part.target])
        changed |= {name for target in scopes.targets_of(part) for name in scopes.changed(target)}
        if isinstance(part, ast.Expr) and not isinstance(node, ast.Expr):
            changed |= _called_on(part)
    for part in ast.walk(node):
        if isinstance(part, ast.For) and scopes.stored([part.target]) & changed:
            # What a loop goes through is changed under the names that the loop gives it, and not what is called for it.
            called = [call.func for call in ast.walk(part.iter) if isinstance(call, ast.Call)]
            changed |= {name.id for name in scopes.names_in(part.iter) if name not in called}
    return frozenset(needs - inner), frozenset(gives | changed)


def given_by(node: ast.stmt) -> frozenset[str]:
    """The names that a statement gives, or whose contents it changes."""
    called = _called_on(node) if isinstance(node, ast.Expr) else set()
    return _needs_and_gives(node)[1] | called


def _changes(step: _Step) -> bool:
    """Whether a statement that gives no name may change what it is given: a call, unless it only shows or records."""
    if not isinstance(step.node, ast.Expr) or not isinstance(step.node.value, ast.Call):
        return False
    function = step.node.value.func
    base = _called_on(step.node) or scopes.stored([function]) or {ast.unparse(function).partition(".")[0]}
    machinery = any(step.scope.get(name, "").partition(".")[0] == _MACHINERY for name in base)
    return not machinery and ast.unparse(function).rpartition(".")[2] not in _OUTPUT


def _called_on(node: ast.Expr) -> set[str]:
    """The name on which a method is called as a statement, as in ``results.append(x)``."""
    if not isinstance(node.value, ast.Call) or not isinstance(node.value.func, ast.Attribute):
        return set()
    return scopes.changed(node.value.func)


def parsed(cell: str) -> list[ast.stmt]:
    """The statements of a cell; those of a notebook's own commands as the Python that they become."""
    return ast.parse(notebooks.python(cell)).body
