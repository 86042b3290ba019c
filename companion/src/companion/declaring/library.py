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

from companion import manuscript, project

Function = ast.FunctionDef | ast.AsyncFunctionDef

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
    imports: Mapping[str, str] = field(repr=False)


class Library:
    """All public modules of some packages, by name, and what any dotted name of them stands for.

    ``name`` is that of the library in ``folder``; ``beside`` are the folders of other packages, by name.
    """

    def __init__(self, name: str, folder: Path, beside: Mapping[str, Path] | None = None) -> None:
        self.name = name
        self.packages = {name: folder} | dict(beside or {})
        listed = [file for package, place in self.packages.items() for file in files(package, place)]
        self._sources = {dotted: _Source(dotted, path) for dotted, path in listed}
        self._homes: dict[str, str] = {}
        public = [source for source in self._sources.values() if not _private(source.name)]
        for source in public:
            # Modules that a package names stand on pages of their own.
            source.public = [local for local in source.public if f"{source.name}.{local}" not in self._sources]
            for local in source.public:
                if (home := self._home(source.name, local)) and not _private(home.rpartition(".")[0]):
                    self._homes[f"{source.name}.{local}"] = home
        # Annotations can be read only when it is known which names there are.
        self.names = {dotted for source in public for dotted in self._names(source)}
        self.aliases = {
            alias: home for alias, home in self._homes.items() if alias not in self.names and home in self.names
        }
        self.modules = {source.name: self._module(source) for source in public}

    def _names(self, source: _Source) -> Iterator[str]:
        """The dotted names of a module that have their place on its page."""
        yield source.name
        for local in source.public:
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

    def meaning(self, module: str, text: str) -> str | None:
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

    def _home(self, module: str, local: str) -> str | None:
        """Where a name of a module is defined, following what is imported from module to module."""
        seen = set()
        while (module, local) not in seen:
            seen.add((module, local))
            source = self._sources.get(module)
            if source is None:
                return None
            if local in source.definitions:
                return f"{module}.{local}"
            origin = source.imports.get(local)
            if origin is None:
                return None
            if origin in self._sources:
                return origin
            module, _, local = origin.rpartition(".")
        return None

    def _module(self, source: _Source) -> Module:
        entries, taken = [], {}
        for local in source.public:
            home = self._homes.get(f"{source.name}.{local}")
            if home and home != f"{source.name}.{local}":
                taken[local] = home
                continue
            definition = self._definition(source, local)
            if definition is not None:
                origin, node = definition
                entries.append(self._entry(origin, node, local))
            else:
                # Taken from another package, or made when the module is imported.
                entries.append(Entry(local, "data", None, "", "", 0))
        entries.sort(key=lambda entry: entry.line)
        return Module(source.name, source.path, source.doc, source.package, entries, taken, source.imports)

    def _definition(self, source: _Source, local: str) -> tuple[_Source, ast.stmt] | None:
        home = self._home(source.name, local)
        module, _, name = (home or "").rpartition(".")
        found = self._sources[module].definitions.get(name) if module in self._sources else None
        return (self._sources[module], found) if found is not None else None

    def _entry(self, source: _Source, node: ast.stmt, name: str) -> Entry:
        if isinstance(node, Function):
            return Entry(
                name,
                "function",
                self._arguments(source, node.args),
                self._annotation(source, node.returns),
                ast.get_docstring(node) or "",
                node.lineno,
            )
        if isinstance(node, ast.ClassDef):
            return self._class(source, node, name)
        annotation = self._annotation(source, node.annotation) if isinstance(node, ast.AnnAssign) else ""
        value = (
            _short(node.value) if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None else "..."
        )
        options = {"value": value} if value != "..." else {}
        return Entry(name, "data", None, annotation, source.remarks.get(name, ""), node.lineno, options)

    def _class(self, source: _Source, node: ast.ClassDef, name: str) -> Entry:
        made = [*node.decorator_list, *node.bases]
        words = {part for one in made for part in _words(one)}
        exception = any(word.endswith(("Error", "Warning", "Exception")) for word in words)
        methods = {part.name: part for part in node.body if isinstance(part, Function)}
        arguments = None
        if "__init__" in methods:
            arguments = self._arguments(source, methods["__init__"].args, skip=1)
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

    def _method(self, source: _Source, node: Function) -> Entry:
        words = {part for one in node.decorator_list for part in _words(one)}
        kind, options, skip = "method", {}, 1
        if words & {"property", "cached_property"}:
            kind = "property"
        elif "classmethod" in words:
            options = {"classmethod": ""}
        elif "staticmethod" in words:
            options, skip = {"staticmethod": ""}, 0
        arguments = None if kind == "property" else self._arguments(source, node.args, skip=skip)
        returns = self._annotation(source, node.returns)
        return Entry(node.name, kind, arguments, returns, ast.get_docstring(node) or "", node.lineno, options)

    def _fields(self, source: _Source, node: ast.ClassDef) -> str | None:
        parts = []
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                annotation = ast.unparse(part.annotation)
                if part.target.id.startswith("_") or "ClassVar" in annotation:
                    continue
                default = f" = {_short(part.value)}" if part.value is not None else ""
                parts.append(f"{part.target.id}: {self._annotation(source, part.annotation)}{default}")
        return ", ".join(parts) if parts else None

    def _arguments(self, source: _Source, arguments: ast.arguments, skip: int = 0) -> str:
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

    def _annotation(self, source: _Source, node: ast.expr | None) -> str:
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

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._named(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return self._named(node)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Constant(node.value.strip()) if isinstance(node.value, str) else node

    def _named(self, node: ast.expr) -> ast.expr:
        text = ast.unparse(node)
        dotted = self._library.meaning(self._module, text)
        return ast.Name(f"~{dotted}" if dotted and "." in dotted else text)


class _Source:
    """One file: what it defines, what it imports, and which of its names are public."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path, self.package = name, path, path.name == "__init__.py"
        tree = manuscript.code(path)
        self.doc = ast.get_docstring(tree) or ""
        self.remarks = {local: remark for local, (remark, _) in _remarks(tree.body).items()}
        self.definitions: dict[str, ast.stmt] = {}
        self.imports: dict[str, str] = {}
        listed: list[str] | None = None
        for node in statements(tree.body):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self.definitions.setdefault(node.name, node)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        self.definitions.setdefault(target.id, node)
                        if target.id == "__all__" and node.value is not None:
                            listed = ast.literal_eval(node.value)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                self.imports |= bound(node, name if self.package else name.rpartition(".")[0])
        self.definitions.pop("__all__", None)
        self.public = [local for local in self.definitions if self._seen(local)] if listed is None else listed

    def _seen(self, local: str) -> bool:
        if local.startswith("_"):
            return False
        return not isinstance(self.definitions[local], (ast.Assign, ast.AnnAssign)) or local in self.remarks


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


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those under a condition, a loop, a try or a with included."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.For | ast.Try | ast.With):
            handled = [part for one in getattr(node, "handlers", []) for part in one.body]
            yield from statements([*node.body, *getattr(node, "orelse", []), *handled, *getattr(node, "finalbody", [])])


def _remarks(body: Sequence[ast.stmt]) -> dict[str, tuple[str, int]]:
    """The string that stands right under an assignment, by the name that is assigned to, with its line."""
    found = {}
    for node, after in pairwise(body):
        if not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)):
            continue
        text = after.value.value
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(text, str):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    found[target.id] = (inspect.cleandoc(text), node.lineno)
    return found


def files(name: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """The modules of a package: dotted names and files."""
    for path in manuscript.listed(folder, "**/*.py"):
        parts = path.relative_to(folder).with_suffix("").parts
        yield ".".join([name, *(parts[:-1] if parts[-1] == "__init__" else parts)]), path


def _private(module: str) -> bool:
    return any(part.startswith("_") for part in module.split("."))


def _shown(method: Function) -> bool:
    """Public methods, and a call that says what it does."""
    words = {part for one in method.decorator_list for part in _words(one)}
    if words & {"overload", "setter"}:
        return False
    return not method.name.startswith("_") or (method.name == "__call__" and ast.get_docstring(method) is not None)


def _members(node: ast.ClassDef) -> Iterator[tuple[str, Function | str]]:
    """Public methods of a class, and its attributes with what is said of them."""
    for part in node.body:
        if isinstance(part, Function) and _shown(part):
            yield part.name, part
    for attribute, (remark, _) in _remarks(node.body).items():
        if not attribute.startswith("_"):
            yield attribute, remark


def _words(node: ast.expr) -> set[str]:
    """The last parts of all names in an expression."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} | {
        part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)
    }


def _short(value: ast.expr) -> str:
    """A default value; one that is too long to read is three dots."""
    text = ast.unparse(value)
    return text if len(text) <= 60 else "..."


def of_book(root: Path) -> Library:
    """The public names of the packages of the book in ``root``."""
    name, *beside = project.packages(root)
    return Library(name, root / "src" / name, {other: root / "src" / other for other in beside})
