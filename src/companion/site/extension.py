"""Extends Sphinx by the directives and roles of the book, and by what its theme and its pages need."""

from __future__ import annotations

import importlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from docutils import nodes
from markupsafe import escape
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.domains.std import StandardDomain
from sphinx.transforms.post_transforms import SphinxPostTransform

from companion import claims, pages, project
from companion.site import figures, ledger, packed, reference
from companion.site.onpage import fill

_DIRECTIVES = {
    "audit-report": ledger.AuditReport,
    "chapter-cards": figures.ChapterCards,
    "chapter-status": figures.ChapterStatus,
    "claims-ledger": ledger.ClaimsLedger,
    "corrections": ledger.Corrections,
    "figure-gallery": figures.FigureGallery,
    "from-library": figures.FromLibrary,
    "live": figures.Live,
    "page-claims": ledger.PageClaims,
    "page-facts": figures.PageFacts,
    "provenance": figures.Provenance,
    "published-figure": figures.PublishedFigure,
    "source-items": ledger.SourceItems,
}
_ROLES = {"checked": ledger.Checked(), "measured": ledger.Measured(), "siteurl": figures.SiteUrl()}
_UNDECLARED = ("sphinx_jupyterbook_latex", "sphinx_multitoc_numbering")
"""They work before and after the pages are read, and do not declare that these may be read side by side."""


def _serve(app: Sphinx, config: Config) -> None:
    """The style sheet, script and MathJax of the press, and what the book has in ``book/_static``."""
    folders = (Path(__file__).resolve().parents[1] / "static", Path(config.companion_root) / "book" / "_static")
    config.html_static_path += [str(folder) for folder in folders if folder.is_dir()]
    # sphinx-book-theme 1.3 with pydata-sphinx-theme 0.17 otherwise draws the search field twice.
    config.html_theme_options["navbar_persistent"] = []
    # The contents in the margin open where the reader is: to write all of them on every page takes as long as the rest.
    config.html_theme_options["collapse_navbar"] = True


def _side_by_side(app: Sphinx) -> None:
    """Let several processes read and write pages, and load what each of them would load before there are several."""
    root = Path(app.config.companion_root)
    claims.figures(root)
    for name in pages.names(root):
        pages.load(root, name)
    for name, _ in reference.modules(root):
        # What cannot be imported, autodoc says.
        with suppress(Exception):
            importlib.import_module(name)
    for name in _UNDECLARED:
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True


class Standard(StandardDomain):
    """Sphinx's own domain, which reads a page anew for every reference to one of its figures; this one reads none."""

    def resolve_xref(
        self, env: Any, fromdocname: str, builder: Any, typ: str, target: str, node: Any, contnode: Any
    ) -> Any:
        """A reference to a figure by its number; all other references as Sphinx resolves them."""
        page, anchor = self.anonlabels.get(target, ("", ""))
        parts = env.toc_fignumbers.get(page, {}).get("figure", {}).get(anchor) if typ == "numref" else None
        title = contnode.astext() if node["refexplicit"] else env.config.numfig_format["figure"]
        if not parts or "{" in title:
            return super().resolve_xref(env, fromdocname, builder, typ, target, node, contnode)
        title = title % ".".join(map(str, parts))
        kind = {"nodeclass": addnodes.number_reference, "title": title}
        return self.build_reference_node(fromdocname, builder, page, anchor, title, "numref", **kind)


class HoldStops(SphinxPostTransform):
    """Browsers break a line between a formula and the stop that follows it; this holds them together."""

    default_priority = 900

    def run(self, **options: Any) -> None:
        for formula in list(self.document.findall(nodes.math)):
            after = formula.next_node(descend=False, siblings=True)
            if not isinstance(after, nodes.Text) or not (stop := after.astext()[:1]) or stop not in ".,;:!?)]’”":
                continue
            parent, place = formula.parent, formula.parent.index(formula)
            held = nodes.inline("", "", formula.deepcopy(), nodes.Text(stop), classes=["book-held"])
            parent[place : place + 2] = [held, nodes.Text(after.astext()[1:])]


NOTEBOOKS = "notebooks"
"""The branch of the repository with the notebooks that run alone, for Colab."""


def _finish(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """What the theme is told of a page: its neighbours, where its text is edited, its description, safe words."""
    root = Path(app.config.companion_root)
    # The theme writes these into its pages as they are; what is escaped once, its own filters do not escape again.
    for name in ("docstitle", "shorttitle", "project", "author", "copyright"):
        context[name] = escape(context.get(name, ""))
    # Without it the theme writes an empty mode, and complains of that in the console of every new reader.
    context.setdefault("default_mode", "auto")
    _neighbours(root, pagename, context)
    edit = f"/edit/{project.identity(root).ref}/"
    exchange = {f"{edit}index.md": f"{edit}book/index.md", f"{edit}{pagename}.ipynb": f"{edit}{pagename}.md"}
    if file := reference.source(root, pagename):
        exchange[f"{edit}{pagename}.rst"] = f"{edit}{file}"
    # The notebooks that run alone are in a branch of their own, to which the workflow pushes them.
    packed_page = f"{pagename.removeprefix('notebooks/')}.ipynb"
    exchange[f"{edit.replace('edit', 'blob', 1)}notebooks/{packed_page}"] = f"/blob/{NOTEBOOKS}/{packed_page}"
    _edit(context.get("header_buttons", []), exchange)
    loaded = context.get("script_files", [])
    context["script_files"] = [
        script
        for script in loaded
        # It would load Live Code from elsewhere.
        if "thebe" not in str(getattr(script, "filename", "")) + str(getattr(script, "attributes", {})).lower()
    ]
    if pagename in app.env.found_docs:
        context["metatags"] = context.get("metatags", "") + str(_head(root, pagename, context))


def _neighbours(root: Path, pagename: str, context: dict[str, Any]) -> None:
    """From one lesson to the next: an audit lies beside the road, between its lesson and the lesson after that."""
    lessons = [f"notebooks/{name}" for name in pages.chapters(root)]
    lesson = f"notebooks/{pages.chapter_of(pagename)}"
    if not pagename.startswith("notebooks/") or lesson not in lessons:
        return
    here = lessons.index(lesson)
    after = lessons[here + 1] if here + 1 < len(lessons) else None
    before = lesson if pagename != lesson else lessons[here - 1] if here else None
    for side, page in (("prev", before), ("next", after)):
        if page is not None:
            title = escape(pages.load(root, page.removeprefix("notebooks/")).title)
            context[side] = {"title": title, "link": context["pathto"](page)}


def _edit(buttons: list[dict[str, Any]], exchange: dict[str, str]) -> None:
    """Exchange the ends of the addresses of buttons, and of those below them."""
    for button in buttons:
        for old, new in exchange.items():
            if str(button.get("url", "")).endswith(old):
                button["url"] = button["url"].removesuffix(old) + new
        _edit(button.get("buttons", []), exchange)


def _head(root: Path, pagename: str, context: dict[str, Any]) -> str:
    """What programs read of a page: its description, and Highwire's names for reference managers."""
    who, title = project.identity(root), str(context.get("title", ""))
    name = pagename.removeprefix("notebooks/")
    said = pages.load(root, name).summary if name in pages.names(root) and name != pagename else title
    return fill("page.head", who=who, page=pagename, title=title, description=" ".join(said.split()))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register directives, roles and hooks, and what every page loads."""
    app.add_config_value("companion_root", "", "env")
    for name, directive in _DIRECTIVES.items():
        app.add_directive(name, directive)
    for name, role in _ROLES.items():
        app.add_role(name, role)
    app.add_domain(Standard, override=True)
    app.add_post_transform(HoldStops)
    app.add_css_file("companion.css")
    app.add_js_file("companion.js", defer="defer")
    reference.setup(app)
    app.connect("config-inited", _serve)
    app.connect("builder-inited", _side_by_side)
    app.connect("html-page-context", _finish, priority=900)
    app.connect("build-finished", packed.note)
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
