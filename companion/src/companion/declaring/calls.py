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
from dataclasses import dataclass, field
from pathlib import Path

from companion import manuscript
from companion.declaring import library, notebooks

_MACHINERY = __package__.partition(".")[0]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NO_CALL = ("isinstance", "issubclass")
"""Functions that are given a class without calling it."""
_OUTPUT = ("print", "display", "glue", "Markdown", "HTML")
"""Functions that leave what they are given as it is, whatever they are imported from."""

_GENERATORS = ("default_rng", "Generator", "RandomState", "manual_seed")
"""What makes generators of random numbers that have a state."""


@dataclass
class Definition:
    """One name of a module: its place, and what it uses, as written (``names``) and as attributes of anything.

    ``texts`` are the texts in its code, its docstring among them.
    """

    name: str
    path: Path
    line: int
    names: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    called: bool = False
    """Whether it is a function or a class."""


@dataclass(frozen=True)
class Reached:
    """What was reached from somewhere: names of definitions, and the attributes that were read on the way."""

    names: frozenset[str]
    attributes: frozenset[str]

    def calls(self, name: str) -> bool:
        """Whether a function, a class or a method of a class is among what was reached."""
        owner, _, member = name.rpartition(".")
        return name in self.names or (owner in self.names and (member in self.attributes or member == "__call__"))


@dataclass
class _Module:
    path: Path
    package: bool
    imports: dict[str, str]
    definitions: dict[str, Definition]


class Code:
    """All modules of a repository's packages and of its tests, by dotted name; tests begin with ``tests``."""

    def __init__(self, root: Path, packages: Sequence[str]) -> None:
        self.packages = packages
        self._modules: dict[str, _Module] = {}
        self._fixtures: dict[str, str] = {}
        for base, folder in (*((one, root / "src" / one) for one in packages), ("tests", root / "tests")):
            self._modules |= {name: self._read(name, path) for name, path in library.files(base, folder)}
        self._resolved: dict[str, str | None] = {}

    def _read(self, name: str, path: Path) -> _Module:
        tree = manuscript.code(path)
        is_package = path.name == "__init__.py"
        found = _Module(path, is_package, {}, {})
        above = name if is_package else name.rpartition(".")[0]
        parts: list[tuple[str, ast.stmt]] = []
        for node in library.statements(tree.body):
            if isinstance(node, ast.Import | ast.ImportFrom):
                found.imports |= library.bound(node, above)
            for local in _assigned_by(node):
                parts.append((local, node))
                found.definitions.setdefault(local, Definition(f"{name}.{local}", path, node.lineno))
                if isinstance(node, _FUNCTIONS) and any("fixture" in ast.unparse(one) for one in node.decorator_list):
                    self._fixtures[f"{name}.{local}"] = f"{name}.{local}"
        scope = found.imports | {local: one.name for local, one in found.definitions.items()}
        for local, node in parts:
            definition = found.definitions[local]
            reader = _Reader(above)
            reader.read(node, scope)
            definition.names |= reader.names
            definition.attributes |= reader.attributes
            definition.called |= isinstance(node, (*_FUNCTIONS, ast.ClassDef))
            constants = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
            definition.texts |= {one for one in constants if isinstance(one, str)}
            if isinstance(node, _FUNCTIONS) and name.partition(".")[0] == "tests":
                definition.names |= {f"fixture {name} {one.arg}" for one in arguments_of(node.args)}
        return found

    def definition(self, name: str) -> Definition | None:
        """The definition of a dotted name, which may be a second name; of a method that of its class."""
        resolved = self.resolve(name)
        if resolved is None:
            return None
        module, _, local = resolved.rpartition(".")
        return self._modules[module].definitions[local]

    def at(self, path: Path, line: int) -> str | None:
        """The definition that a line of a file belongs to: the last one that begins there or before."""
        for module in self._modules.values():
            if module.path == path:
                before = [one for one in module.definitions.values() if one.line <= line]
                return max(before, key=lambda one: one.line).name if before else None
        return None

    def resolve(self, name: str) -> str | None:
        """Where what a dotted name stands for is defined; None for a module, and for what is of another package."""
        if name not in self._resolved:
            self._resolved[name] = None
            self._resolved[name] = self._find(name)
        return self._resolved[name]

    def _find(self, name: str) -> str | None:
        if name.startswith("fixture "):
            return self._fixture(*name.split()[1:])
        parts = name.split(".")
        for count in range(len(parts) - 1, 0, -1):
            module = self._modules.get(".".join(parts[:count]))
            if module is None:
                continue
            local = parts[count]
            if local in module.definitions:
                return module.definitions[local].name
            if local in module.imports:
                return self.resolve(".".join([module.imports[local], *parts[count + 1 :]]))
            return None
        return None

    def _fixture(self, module: str, name: str) -> str | None:
        """The fixture that a test of a module is given under a name: its own, or that of the nearest folder."""
        places = [module]
        while "." in module:
            module = module.rpartition(".")[0]
            places.append(f"{module}.conftest")
        return next((self._fixtures[f"{one}.{name}"] for one in places if f"{one}.{name}" in self._fixtures), None)

    def naming(self, text: str) -> frozenset[str]:
        """The functions and classes of the packages in whose code a text stands, or a constant that holds it."""
        every = [
            one
            for name, module in self._modules.items()
            if name.partition(".")[0] in self.packages
            for one in module.definitions.values()
        ]
        constants = {one.name for one in every if text in one.texts and not one.called}
        return frozenset(
            one.name
            for one in every
            if one.called and (text in one.texts or any(self.resolve(name) in constants for name in one.names))
        )

    def tests(self) -> Iterator[Definition]:
        """Every test function."""
        for name, module in self._modules.items():
            if name.partition(".")[0] == "tests" and name.rpartition(".")[2].startswith("test_"):
                yield from (one for local, one in module.definitions.items() if local.startswith("test_"))

    def called(self, test: Definition) -> Reached:
        """What of the packages a test calls itself, through helpers and fixtures of the tests, but not further."""
        return self.reached(test.names, test.attributes, inside="tests")

    def reached(self, names: Iterable[str], attributes: Iterable[str] = (), *, inside: str = "") -> Reached:
        """Definitions of the packages behind names, and behind those, as long as they lie in the package ``inside``."""
        found, seen, read = set(), set(), set(attributes)
        waiting = list(names)
        while waiting:
            resolved = self.resolve(waiting.pop())
            if resolved is None or resolved in seen:
                continue
            seen.add(resolved)
            base = resolved.partition(".")[0]
            if base in self.packages:
                found.add(resolved)
            if not inside or base == inside:
                definition = self.definition(resolved)
                assert definition is not None
                waiting += definition.names
                read |= definition.attributes
        return Reached(frozenset(found), frozenset(read))


class _Reader(ast.NodeVisitor):
    """Collects the dotted names that an expression or a definition uses, of those that ``scope`` knows."""

    def __init__(self, package: str = "") -> None:
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self._package = package
        self._scope: Mapping[str, str] = {}

    def read(self, node: ast.AST, scope: Mapping[str, str]) -> None:
        before, self._scope = self._scope, scope
        self.visit(node)
        self._scope = before

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in self._scope:
            self.names.add(self._scope[node.id])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.attributes.add(node.attr)
        if dotted := self._dotted(node):
            self.names.add(dotted)
        else:
            self.visit(node.value)

    def _dotted(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            return self._scope.get(node.id)
        if isinstance(node, ast.Attribute) and (base := self._dotted(node.value)):
            return f"{base}.{node.attr}"
        return None

    def visit_Call(self, node: ast.Call) -> None:
        if not (isinstance(node.func, ast.Name) and node.func.id in _NO_CALL):
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        defaults = [*node.args.defaults, *(one for one in node.args.kw_defaults if one)]
        for part in [*node.decorator_list, *defaults]:
            self.visit(part)
        scope = dict(self._scope)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                scope |= library.bound(inner, self._package)
        local = {one.arg for one in arguments_of(node.args)} | stored(node.body)
        self._within(node.body, {name: dotted for name, dotted in scope.items() if name not in local})

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        local = {one.arg for one in arguments_of(node.args)}
        self._within([node.body], {name: dotted for name, dotted in self._scope.items() if name not in local})

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        local = {part.id for one in node.generators for part in ast.walk(one.target) if isinstance(part, ast.Name)}
        # What is gone through stands outside of the names that it gives.
        self.visit(node.generators[0].iter)
        rest = [part for one in node.generators[1:] for part in (one.iter,)]
        rest += [part for one in node.generators for part in one.ifs]
        rest += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._within(rest, {name: dotted for name, dotted in self._scope.items() if name not in local})

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    def _within(self, body: Sequence[ast.AST], scope: Mapping[str, str]) -> None:
        before, self._scope = self._scope, scope
        for part in body:
            self.visit(part)
        self._scope = before


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
                    scope = scope | library.bound(part)
                if isinstance(part, ast.Call) and part.args and isinstance(part.args[0], ast.Constant):
                    key = (ast.unparse(part.func), str(part.args[0].value))
                    self._calls.setdefault(key, (len(self._steps), part))
            replaces = frozenset[str]()
            if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                replaces = frozenset({node.name})
            elif isinstance(node, ast.Assign) and not any(_changed(target) for target in node.targets):
                replaces = gives
            names = needs - set(scope)
            if isinstance(node, _FUNCTIONS):
                inside = inside | {node.name: names}
                names &= _at_once(node)
            self._steps.append(_Step(node, scope, names, _with_bodies(names, inside), gives, replaces, inside))

    def behind(self, call: str, first: str) -> Reached | None:
        """The dotted names that a call rests on; None where no statement has it.

        ``call`` is its function as it is written, ``first`` its first argument, a text. It rests on its own names, and
        from there backwards on every statement that gives a name that is needed, or may change what one stands for.
        """
        if (call, first) not in self._calls:
            return None
        reader = _Reader()
        self._follow(call, first, reader)
        return Reached(frozenset(reader.names), frozenset(reader.attributes))

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
                places |= self._follow(call, first, _Reader(), drawn_from)
        return [ast.unparse(self._steps[place].node) for place in sorted(places)]

    def _follow(self, call: str, first: str, reader: _Reader, drawn_from: Collection[str] = ()) -> set[int]:
        """The places of the statements behind a call, and its own; ``reader`` reads them.

        Using one of ``drawn_from`` changes it.
        """
        place, found = self._calls[call, first]
        step, places = self._steps[place], {place}
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
        return places


def _makes_generator(node: ast.stmt) -> bool:
    """Whether a statement makes an object that every use leaves in another state, as random numbers come from.

    A function that makes one makes it anew in every call.
    """
    if isinstance(node, _FUNCTIONS):
        return False
    called = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(ast.unparse(one).rpartition(".")[2] in _GENERATORS for one in called)


def _sets(step: _Step) -> bool:
    """Whether a statement calls something of an imported package and has nothing of the page in it."""
    return _changes(step) and not step.names and not step.gives


def _at_once(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names that a definition needs when it is made: those of its decorators and of its defaults."""
    parts = [*node.decorator_list, *node.args.defaults, *(one for one in node.args.kw_defaults if one)]
    return {one.id for part in parts for one in ast.walk(part) if isinstance(one, ast.Name)}


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
            inner |= stored([part.target])
        if isinstance(part, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            changed |= {name for target in targets for name in _changed(target)}
        if isinstance(part, ast.Expr) and not isinstance(node, ast.Expr):
            changed |= _called_on(part)
    for part in ast.walk(node):
        if isinstance(part, ast.For) and stored([part.target]) & changed:
            # What a loop goes through is changed under the names that the loop gives it, and not what is called for it.
            called = {id(one.func) for one in ast.walk(part.iter) if isinstance(one, ast.Call)}
            changed |= {one.id for one in ast.walk(part.iter) if isinstance(one, ast.Name) and id(one) not in called}
    gives |= changed
    return frozenset(needs - inner), frozenset(gives)


def given_by(node: ast.stmt) -> frozenset[str]:
    """The names that a statement gives, or whose contents it changes."""
    called = _called_on(node) if isinstance(node, ast.Expr) else set()
    return _needs_and_gives(node)[1] | called


def _changes(step: _Step) -> bool:
    """Whether a statement that gives no name may change what it is given: a call, unless it only shows or records."""
    if not isinstance(step.node, ast.Expr) or not isinstance(step.node.value, ast.Call):
        return False
    function = step.node.value.func
    base = _called_on(step.node) or stored([function]) or {ast.unparse(function).partition(".")[0]}
    machinery = any(step.scope.get(name, "").partition(".")[0] == _MACHINERY for name in base)
    return not machinery and ast.unparse(function).rpartition(".")[2] not in _OUTPUT


def _called_on(node: ast.Expr) -> set[str]:
    """The name on which a method is called as a statement, as in ``results.append(x)``."""
    if not isinstance(node.value, ast.Call) or not isinstance(node.value.func, ast.Attribute):
        return set()
    return _changed(node.value.func)


def _changed(target: ast.expr) -> set[str]:
    """The name whose item or attribute is meant; none for a name itself."""
    if isinstance(target, ast.Tuple | ast.List):
        return {name for one in target.elts for name in _changed(one)}
    base = target
    while isinstance(base, ast.Attribute | ast.Subscript | ast.Starred):
        base = base.value
    return {base.id} if isinstance(base, ast.Name) and base is not target else set()


def parsed(cell: str) -> list[ast.stmt]:
    """The statements of a cell; those of a notebook's own commands as the Python that they become."""
    return ast.parse(notebooks.python(cell)).body


def _assigned_by(node: ast.stmt) -> set[str]:
    """The names that a statement of a module gives, or whose items it sets."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return stored(targets) | {name for target in targets for name in _changed(target)}
    return set()


def stored(body: Sequence[ast.AST]) -> set[str]:
    """Names that are assigned anywhere within."""
    return {
        part.id
        for node in body
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }


def arguments_of(arguments: ast.arguments) -> list[ast.arg]:
    """All arguments of a function, by position, by name and the rest."""
    more = [one for one in (arguments.vararg, arguments.kwarg) if one]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *more]
