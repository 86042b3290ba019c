"""Says what the names in code stand for, and in which module of a package they are defined, without imports.

A name is followed through imports and second names to where it is defined. One that was assigned meanwhile, or that is
an argument of the function it stands in, is something else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from companion import manuscript

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """One file: what it defines, by the statements that do so, and what it imports."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path = name, path
        self.package = path.name == "__init__.py"
        self.above = name if self.package else name.rpartition(".")[0]
        self.tree = manuscript.code(path)
        self.imports: dict[str, str] = {}
        self.definitions: dict[str, list[ast.stmt]] = {}
        for node in _statements(self.tree.body):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.imports |= bound(node, self.above)
            for local in _given_by(node):
                self.definitions.setdefault(local, []).append(node)


class Modules(dict[str, Module]):
    """All modules of some packages, by dotted name; the packages are given by name with their folders."""

    def __init__(self, packages: Mapping[str, Path]) -> None:
        for package, folder in packages.items():
            for path in manuscript.listed(folder, "**/*.py"):
                parts = path.relative_to(folder).with_suffix("").parts
                name = ".".join([package, *(parts[:-1] if parts[-1] == "__init__" else parts)])
                self[name] = Module(name, path)
        self._homes: dict[str, str | None] = {}

    def home(self, name: str) -> str | None:
        """The module, or the name in a module, that a dotted name stands for; of an attribute, what has it.

        None for what is of another package.
        """
        if name in self:
            return name
        if name not in self._homes:
            # A name that leads back to itself has no home.
            self._homes[name] = None
            self._homes[name] = self._found(name.split("."))
        return self._homes[name]

    def _found(self, parts: Sequence[str]) -> str | None:
        for count in range(len(parts) - 1, 0, -1):
            module, local = self.get(".".join(parts[:count])), parts[count]
            if module and local in module.definitions:
                return f"{module.name}.{local}"
            if module and local in module.imports:
                return self.home(".".join([module.imports[local], *parts[count + 1 :]]))
            if module:
                return None
        return None


class Reader(ast.NodeVisitor):
    """Visits statements in the order in which they would run, and notes what the names in them stand for.

    ``bound`` says what names stand for so far, relative imports being those of ``package``. ``used`` are the dotted
    names, each as long as it stands there, with their nodes; ``attributes`` those that are read of anything else too.
    """

    def __init__(self, package: str = "") -> None:
        self.bound: dict[str, str] = {}
        self.used: list[tuple[ast.AST, str]] = []
        self.attributes: set[str] = set()
        self._package = package

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.bound |= bound(node, self._package)

    visit_ImportFrom = visit_Import

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.bound.pop(node.id, None)
        elif node.id in self.bound:
            self.used.append((node, self.bound[node.id]))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.attributes.add(node.attr)
        if dotted := self._dotted(node):
            self.used.append((node, dotted))
        else:
            self.visit(node.value)

    def _dotted(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            return self.bound.get(node.id)
        if isinstance(node, ast.Attribute) and (base := self._dotted(node.value)):
            return f"{base}.{node.attr}"
        return None

    def visit_Assign(self, node: ast.Assign | ast.AugAssign) -> None:
        self.in_order(node.value, *targets_of(node))

    visit_AugAssign = visit_Assign

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.annotation(node.annotation)
        self.in_order(node.value, node.target)

    def visit_For(self, node: ast.For) -> None:
        self.in_order(node.iter, node.target, *node.body, *node.orelse)

    def visit_FunctionDef(self, node: Function) -> None:
        self._function(node, {node.name})
        self.bound.pop(node.name, None)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.in_order(*at_once(node))
        self._inside([node.body], {argument.arg for argument in arguments_of(node)})

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.in_order(*node.decorator_list, *node.bases, *node.keywords)
        self.bound.pop(node.name, None)
        for part in node.body:
            # A method sees nothing of what its class gives.
            if isinstance(part, FUNCTIONS):
                self._function(part, set())
            else:
                self._inside([part], set())

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        parts = [part for loop in node.generators for part in (loop.iter, loop.target, *loop.ifs)]
        parts += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._inside(parts, set())

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    def annotation(self, node: ast.expr) -> None:
        """Visit an annotation."""
        self.visit(node)

    def in_order(self, *nodes: ast.AST | None) -> None:
        """Visit what there is of ``nodes``, the first first."""
        for node in filter(None, nodes):
            self.visit(node)

    def _function(self, node: Function, own: set[str]) -> None:
        self.in_order(*at_once(node))
        for annotation in [*(argument.annotation for argument in arguments_of(node)), node.returns]:
            if annotation:
                self.annotation(annotation)
        self._inside(node.body, own | {argument.arg for argument in arguments_of(node)} | stored(node.body))

    def _inside(self, body: Sequence[ast.AST], own: set[str]) -> None:
        """Visit what has a scope of its own, in which the names ``own`` stand for something else."""
        before = dict(self.bound)
        self.bound = {name: dotted for name, dotted in before.items() if name not in own}
        self.in_order(*body)
        self.bound = before


def bound(node: ast.Import | ast.ImportFrom, package: str = "") -> dict[str, str]:
    """The names that an import binds, and what each of them stands for."""
    if isinstance(node, ast.Import):
        return {
            alias.asname or alias.name.partition(".")[0]: alias.name if alias.asname else alias.name.partition(".")[0]
            for alias in node.names
        }
    base = node.module or ""
    if node.level:
        parents = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*parents, *([base] if base else [])])
    return {alias.asname or alias.name: f"{base}.{alias.name}" for alias in node.names}


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those under a condition, a loop, a try or a with included."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.For | ast.Try | ast.With):
            handled = [part for one in getattr(node, "handlers", []) for part in one.body]
            more = [*getattr(node, "orelse", []), *handled, *getattr(node, "finalbody", [])]
            yield from _statements([*node.body, *more])


def _given_by(node: ast.stmt) -> set[str]:
    """The names that a statement of a module gives, or whose items it sets."""
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return {node.name}
    targets = targets_of(node)
    return stored(targets) | {name for target in targets for name in changed(target)}


def targets_of(node: ast.AST) -> Sequence[ast.expr]:
    """What an assignment gives something to; [] for another statement."""
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign) else []


def changed(target: ast.expr) -> set[str]:
    """The name whose item or attribute is meant; none for a name itself."""
    if isinstance(target, ast.Tuple | ast.List):
        return {name for part in target.elts for name in changed(part)}
    base = target
    while isinstance(base, ast.Attribute | ast.Subscript | ast.Starred):
        base = base.value
    return {base.id} if isinstance(base, ast.Name) and base is not target else set()


def stored(body: Sequence[ast.AST]) -> set[str]:
    """Names that are assigned anywhere within."""
    return {name.id for name in names_in(*body) if isinstance(name.ctx, ast.Store)}


def names_in(*nodes: ast.AST) -> Iterator[ast.Name]:
    """The plain names anywhere within."""
    return (part for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name))


def at_once(node: Function | ast.Lambda) -> list[ast.expr]:
    """What is computed when a function is made: its decorators and its defaults."""
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return [*decorators, *node.args.defaults, *filter(None, node.args.kw_defaults)]


def arguments_of(node: Function | ast.Lambda) -> list[ast.arg]:
    """All arguments of a function, by position, by name and the rest."""
    listed = node.args
    return [*listed.posonlyargs, *listed.args, *listed.kwonlyargs, *filter(None, (listed.vararg, listed.kwarg))]
