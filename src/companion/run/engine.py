"""The engine with which papermill executes a page: it takes figures, expressions, claims and checks as it goes.

It evaluates every expression of the words where it stands, after the cells above it, and keeps it in the metadata of
its cell as ``user_expressions``, as Jupyter's protocol has them.
"""

from __future__ import annotations

import ast
import base64
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import papermill
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import Engine as PapermillEngine
from papermill.engines import papermill_engines
from traitlets.config import Config

from companion.run import kernel
from companion.run.key import Checks, expressions, figure_name

_MOST, _LONGEST = 100_000, 2_000  # characters of text that a cell may show, and of a line of it


class Stopped(Exception):
    """A page stopped, for a reason in words."""


@dataclass
class Page:
    """What the engine has to know of a page, and what it finds out."""

    folder: Path
    limit: float
    checks: Checks | None
    variables: Mapping[str, str]
    """Of the kernel's environment."""
    private: Path
    """A folder for its sockets, and another one in which it runs."""
    ends: float = math.inf
    """The moment at which it is stopped."""
    cell: int = 0
    """Code cells that were begun, without that of injected parameters."""
    notebook: NotebookNode | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def execute(notebook: NotebookNode, parameters: Mapping[str, Any], page: Page) -> None:
    """Execute a notebook with papermill, as ``page.notebook``. Raises ``Stopped`` where the page fails."""
    papermill_engines.register(__name__, _Engine)
    names = {"engine_name": __name__, "kernel_name": "python3"}
    try:
        papermill.execute_notebook(notebook, None, dict(parameters), **names, progress_bar=False, page=page)
    finally:
        for cell in page.notebook.cells if page.notebook else []:
            cell.get("outputs", []).extend(cell.metadata.pop("raised", []))


class _Engine(PapermillEngine):  # type: ignore[misc]
    @classmethod
    def execute_managed_notebook(cls, manager: Any, kernel_name: str, *, page: Page, **options: Any) -> None:
        page.notebook = manager.nb
        # By sockets in a folder of its own: another program may take a port that was free a moment before.
        client = _Client(
            manager,
            kernel_name=kernel_name,
            iopub_timeout=60,
            timeout_func=lambda cell: max(1, math.ceil(page.ends - time.monotonic())),
            config=Config({"KernelManager": {"transport": "ipc", "ip": f"{page.private}/k"}}),
        )
        client.page = page
        client.execute(env=dict(page.variables), cwd=str(page.private / "cwd"))


class _Client(PapermillNotebookClient):  # type: ignore[misc]
    page: Page

    def papermill_execute_cells(self) -> None:
        """The beginning, all cells, then the checks and the facts."""
        self.page.ends = time.monotonic() + self.page.limit
        # Not by a startup file of IPython, which does not find one in a folder with brackets in its name.
        self.ask(kernel.call("begin"), "at its beginning")
        super().papermill_execute_cells()
        self.page.cell = 0
        with_checks = self.page.checks
        if with_checks:
            arguments = str(with_checks.path), dict(with_checks.claims), with_checks.tests
            self.ask(kernel.call("check", *arguments), "book/checks")
        self.page.facts = json.loads(_text(self.ask(kernel.call("facts"), "at its end")))

    def execute_cell(self, cell: NotebookNode, cell_index: int) -> None:
        """A cell, its figure or its claim, and the expressions of its words."""
        code = cell.cell_type == "code"
        figure, claim = figure_name(cell) if code else "", cell.metadata.get("claim") if code else None
        if code and "injected-parameters" not in cell.metadata.get("tags", []):
            self.page.cell += 1
            (self.page.folder / "progress").write_text(str(self.page.cell), encoding="utf-8")
        if figure:
            self.ask(kernel.call("hold", True), f"figure {figure}")
        try:
            super().execute_cell(cell, cell_index)
        except CellExecutionError as error:
            raise Stopped(f"{error.ename}: {error.evalue}") from error
        except CellTimeoutError as error:
            raise self._too_late() from error
        except DeadKernelError as error:
            raise Stopped("the kernel died") from error
        for one in cell.get("outputs", []):
            if one.output_type == "stream":
                one.text = _cut(one.text)
            elif "text/plain" in one.get("data", {}):
                one.data["text/plain"] = _cut(one.data["text/plain"])
        if "raises-exception" in cell.metadata.get("tags", []):
            # papermill takes every error that it sees for a failure: `execute` brings these back.
            cell.metadata["raised"] = [one for one in cell.outputs if one.output_type == "error"]
            cell.outputs = [one for one in cell.outputs if one.output_type != "error"]
        if figure:
            self.ask(kernel.call("take", figure), f"figure {figure}", cell)
            cell.outputs = [one for one in cell.outputs if "image/png" not in one.get("data", {})]
            picture = (self.page.folder / "figures" / figure / f"{figure}.png").read_bytes()
            data, about = {"image/png": base64.b64encode(picture).decode("ascii")}, {"companion": {"figure": figure}}
            cell.outputs.append(nbformat.v4.new_output("display_data", data, metadata=about))
        if claim:
            said = _text(self.ask(kernel.call("claim", claim), f"claim {claim}", cell))
            shown = nbformat.v4.new_output(
                "display_data", {"text/plain": said}, metadata={"companion": {"claim": claim}}
            )
            cell.outputs = [*(one for one in cell.outputs if one.output_type != "execute_result"), shown]
        if wanted := expressions(cell):
            found = [(wish, self.ask(wish, f"{{eval}}`{wish}`", cell)) for wish in wanted]
            cell.metadata["user_expressions"] = [{"expression": wish, "result": result} for wish, result in found]

    def ask(self, expression: str, place: str, cell: NotebookNode | None = None) -> dict[str, Any]:
        """The value of an expression in the kernel, as Jupyter's protocol has it; shows nothing.

        Raises ``Stopped`` with the place if the expression raises.
        """
        try:
            asked = self.kc.execute("", silent=True, store_history=False, user_expressions={"": expression})
            reply = self.wait_for_reply(asked, cell or nbformat.v4.new_code_cell())
        except CellTimeoutError as error:
            raise self._too_late() from error
        except DeadKernelError as error:
            raise Stopped(f"{place}: the kernel died") from error
        result: dict[str, Any] = reply["content"].get("user_expressions", {}).get("") or reply["content"]
        if result["status"] != "ok":
            raise Stopped(f"{place}: {result['ename']}: {result['evalue']}")
        return result

    def output(self, outs: list[NotebookNode], msg: Any, display_id: Any, cell_index: int) -> NotebookNode | None:
        """Joins what is printed to what was printed before, up to a length, so that a flood costs its own length."""
        content = msg["content"]
        if msg["msg_type"] == "stream" and outs and outs[-1].get("name") == content["name"]:
            text = outs[-1].text + content["text"]
            outs[-1].text = text if len(text) <= 2 * _MOST else _seen(text)[: 2 * _MOST]
            return outs[-1]
        return super().output(outs, msg, display_id, cell_index)

    def _too_late(self) -> Stopped:
        return Stopped(f"stopped after {self.page.limit:.0f} s, its limit (companion: limit in the front matter)")


def _text(result: Mapping[str, Any]) -> str:
    """The text of a value that is a string."""
    return str(ast.literal_eval(result["data"]["text/plain"]))


def _seen(text: str) -> str:
    """What a terminal shows of lines that are written over."""
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def _cut(text: str) -> str:
    """The text as it is seen, up to a length, and so are its lines."""
    text = _seen(text)
    if len(text) > _MOST:
        text = f"{text[:_MOST]}\n[the output is cut here, after {_MOST // 1000} kB]\n"
    return re.sub(rf"(.{{{_LONGEST}}})(.+)", lambda line: f"{line[1]} [... {len(line[2])} more characters]", text)
