"""The notebook that a lesson offers for download runs alone: in an empty folder, without the repository.

With ``PACKED_PYTHON=_build/colab/bin/python`` (see ``make colab``) it runs beside Colab's packages.
"""

import os
import sys
from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

from companion import check, pages
from companion.run import kernel

ROOT = Path(__file__).resolve().parents[2]
OFFERED = ROOT / "_build" / "html" / "_sources" / "notebooks"
LESSONS = pages.chapters(ROOT)
HEAVIEST = 400_000
"""Most bytes of a notebook with its outputs."""
WITHOUT_REPOSITORY = f"""\
import sys

sys.path[:] = [path for path in sys.path if not path.startswith({str(ROOT / "src")!r})]
"""


def offered(name):
    path = OFFERED / f"{name}.ipynb"
    if not (ROOT / "_build" / "site.key").is_file():
        pytest.skip("make book makes the notebooks")
    return path


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", LESSONS)
def test_a_downloaded_lesson_runs_in_an_empty_folder(name, tmp_path):
    lesson = pages.load(ROOT, name)
    notebook = nbformat.read(offered(name), as_version=4)
    sources = [cell.source for cell in notebook.cells]
    given = next(cell for cell in lesson.notebook.cells if "parameters" in cell.metadata.get("tags", []))
    quick = "\n".join(f"{parameter} = {value!r}" for parameter, value in lesson.quick.items())
    notebook.cells.insert(sources.index(given.source) + 1, nbformat.v4.new_code_cell(quick))
    alone = f"import spinbook\nassert not spinbook.__file__.startswith({str(ROOT)!r}), spinbook.__file__"
    notebook.cells.append(nbformat.v4.new_code_cell(alone))
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "sitecustomize.py").write_text(WITHOUT_REPOSITORY)
    (tmp_path / "empty").mkdir()
    manager = KernelManager(kernel_name="python3")
    manager.kernel_spec.argv[0] = os.environ.get("PACKED_PYTHON", sys.executable)
    client = NotebookClient(
        notebook, km=manager, timeout=600, resources={"metadata": {"path": str(tmp_path / "empty")}}
    )
    # What `make book` compiled for the lesson is loaded. A second thread of PyTorch would wait at full speed.
    settings = {"JAX_COMPILATION_CACHE_DIR": str(kernel.compiled(ROOT)), "OMP_NUM_THREADS": "1"}
    client.execute(env={**kernel.clean(), **settings, "PYTHONPATH": str(tmp_path / "path")})


@pytest.mark.parametrize("name", LESSONS)
def test_a_downloaded_lesson_is_light(name):
    assert offered(name).stat().st_size <= HEAVIEST


def test_every_lesson_is_a_notebook_that_anybody_can_run():
    assert [str(finding) for finding in check.book(ROOT) if finding.rule == "lesson-visible"] == []
