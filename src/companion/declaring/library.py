"""Lists the public names of the book's library from its source, without importing it.

A module's public names are those of its ``__all__``; without one, its functions, classes and documented constants that
do not begin with an underscore. A name that a package takes from one of its modules is the same thing under a second
name.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from companion import project
from companion.declaring import scopes
from companion.declaring.scopes import Function

_SAME = {"jaxtyping.Array": "jax.Array"}
"""Names under which a package hands on what another one documents."""
_FIELDS = ("dataclass", "NamedTuple", "Module", "TypedDict", "Protocol")
"""What a class is made or inherits from where its annotated names are the arguments of its constructor."""


@dataclass(frozen=True)
class Entry:
    """One public thing: ``kind`` is a directive of Sphinx's Python domain, ``arguments`` what is in its brackets."""

    name: str
    kind: str
    arguments: str | None
    returns: str
    doc: str
    line: int
    options: Mapping[str, str] = field(default_factory=dict)
    members: Sequence[Entry] = ()


@dataclass(frozen=True)
class Module:
    """A public module: its entries in the order of the source, and the names that it takes from elsewhere."""

    name: str
    path: Path
    doc: str
    package: bool
    entries: Sequence[Entry]
    taken: Mapping[str, str]


class Library:
    """All public modules of some packages, by name, and what any dotted name of them stands for.

    ``packages`` are their folders by name, that of the book's library first.
    """

    def __init__(self, packages: Mapping[str, Path]) -> None:
        self.name, self.packages = next(iter(packages)), packages
        self._sources = scopes.Modules(self.packages)
        self._homes: dict[str, str] = {}
        public = [source for source in self._sources.values() if not _private(source.name)]
        # Modules that a package names stand on pages of their own.
        self._public = {
            source.name: [local for local in _listed(source) if f"{source.name}.{local}" not in self._sources]
            for source in public
        }
        for module, names in self._public.items():
            for local in names:
                home = self._sources.home(f"{module}.{local}")
                if home and not _private(home.rpartition(".")[0]):
                    self._homes[f"{module}.{local}"] = home
        # Annotations can be read only when it is known which names there are.
        self.names = {dotted for source in public for dotted in self._names(source)}
        self.aliases = {
            alias: home for alias, home in self._homes.items() if alias not in self.names and home in self.names
        }
        self.modules = {source.name: self._module(source) for source in public}
        every = [(f"{module.name}.{entry.name}", entry) for module in self.modules.values() for entry in module.entries]
        self.entries = dict(every)
        """All entries by their dotted names, with the members of classes."""
        self.entries |= {f"{name}.{member.name}": member for name, entry in every for member in entry.members}

    def _names(self, source: scopes.Module) -> Iterator[str]:
        """The dotted names of a module that have their place on its page."""
        yield source.name
        for local in self._public[source.name]:
            dotted = f"{source.name}.{local}"
            if self._homes.get(dotted, dotted) == dotted:
                yield dotted
                _, node = self._definition(source, local) or (source, None)
                if isinstance(node, ast.ClassDef):
                    yield from (f"{dotted}.{member}" for member, _ in _members(node))

    def find(self, dotted: str) -> str | None:
        """The name under which the reference has what ``dotted`` stands for; None if it has no such entry."""
        dotted = self.aliases.get(dotted, dotted)
        if dotted in self.names:
            return dotted
        # A member of something that has a second name.
        head, _, last = dotted.rpartition(".")
        if head and (found := self.find(head)) and f"{found}.{last}" in self.names:
            return f"{found}.{last}"
        return None

    def meaning(self, module: str, text: str) -> str:
        """What a name stands for where it is written in a module: its dotted name, of this library or of another.

        A module that is not imported there may be named as its neighbours in one package name it.
        """
        head, _, rest = text.partition(".")
        source = self._sources.get(module)
        beside = [] if source and head in source.imports else [f"{module.rpartition('.')[0]}.{text}"]
        for candidate in (f"{module}.{text}", *beside, text, *(f"{package}.{text}" for package in self.packages)):
            if found := self.find(candidate):
                return found
        base = source.imports.get(head) if source else None
        dotted = f"{base}.{rest}" if base and rest else base or text
        dotted = _SAME.get(dotted, dotted)
        return self.find(dotted) or dotted

    def _module(self, source: scopes.Module) -> Module:
        entries, taken = [], {}
        for local in self._public[source.name]:
            home = self._homes.get(f"{source.name}.{local}")
            if home and home != f"{source.name}.{local}":
                taken[local] = home
                continue
            if definition := self._definition(source, local):
                origin, node = definition
                entries.append(self._entry(origin, node, local))
            else:
                # Taken from another package, or made when the module is imported.
                entries.append(Entry(local, "data", None, "", "", 0))
        entries.sort(key=lambda entry: entry.line)
        doc = ast.get_docstring(source.tree) or ""
        return Module(source.name, source.path, doc, source.package, entries, taken)

    def _definition(self, source: scopes.Module, local: str) -> tuple[scopes.Module, ast.stmt] | None:
        home = self._sources.home(f"{source.name}.{local}")
        module, _, name = (home or "").rpartition(".")
        if module not in self._sources:
            return None
        for node in self._sources[module].definitions.get(name, ()):
            # Of several names at once nothing is said of each.
            if all(isinstance(target, ast.Name) for target in scopes.targets_of(node)):
                return self._sources[module], node
        return None

    def _entry(self, source: scopes.Module, node: ast.stmt, name: str) -> Entry:
        if isinstance(node, Function):
            return self._function(source, node, name, "function")
        if isinstance(node, ast.ClassDef):
            return self._class(source, node, name)
        annotation = self._annotation(source, node.annotation) if isinstance(node, ast.AnnAssign) else ""
        value = _short(node.value) if isinstance(node, ast.Assign | ast.AnnAssign) and node.value else "..."
        options = {"value": value} if value != "..." else {}
        return Entry(name, "data", None, annotation, _remarks(source.tree.body).get(name, ""), node.lineno, options)

    def _function(
        self, source: scopes.Module, node: Function, name: str, kind: str, skip: int = 0, **options: str
    ) -> Entry:
        """A function without the first ``skip`` arguments, which nobody gives."""
        arguments = None if kind == "property" else self._arguments(source, node.args, skip)
        returns = self._annotation(source, node.returns)
        return Entry(name, kind, arguments, returns, ast.get_docstring(node) or "", node.lineno, options)

    def _class(self, source: scopes.Module, node: ast.ClassDef, name: str) -> Entry:
        words = _words(*node.decorator_list, *node.bases)
        exception = any(word.endswith(("Error", "Warning", "Exception")) for word in words)
        methods = {part.name: part for part in node.body if isinstance(part, Function)}
        arguments = None
        if "__init__" in methods:
            arguments = self._arguments(source, methods["__init__"].args, 1)
        elif words & set(_FIELDS):
            arguments = self._fields(source, node)
        members = [
            self._method(source, part)
            if isinstance(part, Function)
            else Entry(member, "attribute", None, "", part, node.lineno)
            for member, part in _members(node)
        ]
        kind = "exception" if exception else "class"
        return Entry(name, kind, arguments, "", ast.get_docstring(node) or "", node.lineno, members=members)

    def _method(self, source: scopes.Module, node: Function) -> Entry:
        words = _words(*node.decorator_list)
        if words & {"property", "cached_property"}:
            return self._function(source, node, node.name, "property")
        if "staticmethod" in words:
            return self._function(source, node, node.name, "method", staticmethod="")
        options = {"classmethod": ""} if "classmethod" in words else {}
        return self._function(source, node, node.name, "method", 1, **options)

    def _fields(self, source: scopes.Module, node: ast.ClassDef) -> str | None:
        parts = []
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                annotation = ast.unparse(part.annotation)
                if part.target.id.startswith("_") or "ClassVar" in annotation:
                    continue
                default = f" = {_short(part.value)}" if part.value is not None else ""
                parts.append(f"{part.target.id}: {self._annotation(source, part.annotation)}{default}")
        return ", ".join(parts) if parts else None

    def _arguments(self, source: scopes.Module, arguments: ast.arguments, skip: int) -> str:
        arguments = copy.deepcopy(arguments)
        plain = [*arguments.posonlyargs, *arguments.args]
        kept = plain[skip:]
        arguments.posonlyargs = [one for one in arguments.posonlyargs if one in kept]
        arguments.args = [one for one in arguments.args if one in kept]
        arguments.defaults = arguments.defaults[-len(kept) :] if kept else []
        for default in (arguments.defaults, arguments.kw_defaults):
            default[:] = [None if one is None else ast.Name(_short(one)) for one in default]  # type: ignore[misc]
        for one in [*kept, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]:
            if one is not None and one.annotation is not None:
                one.annotation = ast.Name(self._annotation(source, one.annotation))
        return ast.unparse(arguments)

    def _annotation(self, source: scopes.Module, node: ast.expr | None) -> str:
        """An annotation with full names, each behind a "~" so that the page shows its last part only."""
        if node is None:
            return ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = ast.parse(node.value.strip(), mode="eval").body
        return ast.unparse(_Qualified(self, source.name).visit(copy.deepcopy(node))).replace("~(", "(")


class _Qualified(ast.NodeTransformer):
    """Names of an annotation exchanged for "~" and their full names; shapes lose the space that hides them."""

    def __init__(self, library: Library, module: str) -> None:
        self._library, self._module = library, module

    def visit_Name(self, node: ast.Name | ast.Attribute) -> ast.expr:
        text = ast.unparse(node)
        dotted = self._library.meaning(self._module, text)
        return ast.Name(f"~{dotted}" if "." in dotted else text)

    visit_Attribute = visit_Name

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Constant(node.value.strip()) if isinstance(node.value, str) else node


def _listed(source: scopes.Module) -> list[str]:
    """The names that a module says are public, or those that are because they say something of themselves."""
    for node in reversed(source.definitions.get("__all__", [])):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            names: list[str] = ast.literal_eval(node.value)
            return names
    remarks = _remarks(source.tree.body)
    return [
        local
        for local, (node, *_) in source.definitions.items()
        if not local.startswith("_") and (isinstance(node, Function | ast.ClassDef) or local in remarks)
    ]


def _remarks(body: Sequence[ast.stmt]) -> dict[str, str]:
    """The string that stands right under an assignment, by the name that is assigned to."""
    found: dict[str, str] = {}
    for node, after in pairwise(body):
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            names = (target.id for target in scopes.targets_of(node) if isinstance(target, ast.Name))
            found |= dict.fromkeys(names, inspect.cleandoc(after.value.value))
    return found


def _private(module: str) -> bool:
    return any(part.startswith("_") for part in module.split("."))


def _shown(method: Function) -> bool:
    """Public methods, and a call that says what it does."""
    if _words(*method.decorator_list) & {"overload", "setter"}:
        return False
    return not method.name.startswith("_") or (method.name == "__call__" and ast.get_docstring(method) is not None)


def _members(node: ast.ClassDef) -> Iterator[tuple[str, Function | str]]:
    """Public methods of a class, and its attributes with what is said of them."""
    for part in node.body:
        if isinstance(part, Function) and _shown(part):
            yield part.name, part
    for attribute, remark in _remarks(node.body).items():
        if not attribute.startswith("_"):
            yield attribute, remark


def _words(*nodes: ast.expr) -> set[str]:
    """The last parts of all names in expressions."""
    parts = [part for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute)]
    return {part.id if isinstance(part, ast.Name) else part.attr for part in parts}


def _short(value: ast.expr) -> str:
    """A default value; one that is too long to read is three dots."""
    text = ast.unparse(value)
    return text if len(text) <= 60 else "..."


def of_book(root: Path) -> Library:
    """The public names of the packages of the book in ``root``."""
    return Library({name: root / "src" / name for name in project.packages(root)})
