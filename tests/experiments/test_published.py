"""The command line and the list of the book's sweeps, which has the sizes of its pages."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import yaml

from experiments import published
from experiments.__main__ import main
from experiments.published import PUBLISHED, QUICK, SWEEPS, Published, Sizes, chosen, compute
from spinbook.self_attention import paper_network
from spinbook.sweep import FailedTasks

ROOT = Path(__file__).resolve().parents[2]


def parameters_of(page):
    text = (ROOT / "notebooks" / f"{page}.md").read_text(encoding="utf-8")
    values: dict[str, object] = {}
    exec(re.search(r":tags: \[parameters[^\n]*\n(.*?)```", text, flags=re.DOTALL)[1], values)
    quick = yaml.safe_load(text.split("---\n")[1])["companion"]["quick"]
    return values, quick


def test_sizes_are_those_of_the_chapter():
    values, quick = parameters_of("audits/attention-dynamics")
    for name in (field for field in Sizes._fields if field in values):
        assert getattr(PUBLISHED, name) == values[name], name
        assert getattr(QUICK, name) == quick[name], name


def test_the_list_names_every_sweep_once_and_needs_no_folder(capsys):
    assert main([]) == main(["list"]) == 0
    shown = capsys.readouterr().out
    assert len({sweep.name for sweep in SWEEPS}) == len(SWEEPS)
    for sweep in SWEEPS:
        assert shown.count(f"{sweep.name} ") == 2


def test_the_paper_s_diagrams_are_both_ranges_of_all_five_fields():
    assert len(chosen(["paper"])) == 10
    found = []
    for diagram in chosen(["paper"]):
        network, betas, options = diagram.compute.args[1](PUBLISHED)
        np.testing.assert_array_equal(network.semantic_signs, paper_network().semantic_signs)
        # The source: 4001 values, 120,000 steps of which the last 20,000 are kept.
        assert (betas.size, options["steps"], options["transient"]) == (4001, 20000, 100000)
        found.append((betas[0], betas[-1], options["observation"].field))
    fields = ["output_semantic", "values", "queries", "keys", "attention"]
    assert sorted(found) == sorted((*ends, field) for ends in ((0.0, 3.0), (1.24, 1.28)) for field in fields)
    assert all(sweep.paper for sweep in chosen(["paper"]))
    assert chosen(["all"]) == list(SWEEPS)


def test_unknown_names_and_numbers_are_refused(tmp_path, capsys):
    assert main(["run", "unheard", "--out", str(tmp_path)]) == 2
    assert "error: name: expected some of all, attention-dynamics-bifurcation" in capsys.readouterr().err
    for wrong in (["--threads", "0"], ["--time-limit", "-1"], ["--threads", "1", "--processes", "1"]):
        with pytest.raises(SystemExit):
            main(["run", "comparison", "--out", str(tmp_path), *wrong])


@pytest.fixture
def fake(monkeypatch):
    """Sweeps that cost nothing: one notes its options, one fails, one is stopped."""
    noted = []

    def note(out, quick, **options):
        noted.append((out, quick, options))

    def fail(out, quick, **options):
        raise FailedTasks("1 of 3 tasks failed", [ValueError("why")])

    def stop(out, quick, **options):
        raise KeyboardInterrupt

    sweeps = tuple(Published(f.__name__, "", 1.0, f) for f in (fail, note, stop))
    monkeypatch.setattr(published, "SWEEPS", sweeps)
    return noted


def test_what_is_asked_for_is_passed_on(fake, tmp_path):
    assert main(["run", "note", "--out", str(tmp_path), "--quick", "--threads", "2", "--time-limit", "9"]) == 0
    ((out, quick, options),) = fake
    assert (out, quick) == (tmp_path, True)
    assert options == {"executor": None, "num_threads": 2, "time_limit": 9.0, "progress": True}


def test_a_sweep_that_fails_does_not_stop_the_others_and_is_told_at_the_end(fake, tmp_path, capsys):
    assert main(["run", "fail", "note", "--out", str(tmp_path)]) == 1
    assert len(fake) == 1
    assert "1 of 2 sweeps are not complete: sweep fail: 1 of 3 tasks failed" in capsys.readouterr().err
    with pytest.raises(ExceptionGroup) as caught:
        compute(["fail"], tmp_path, progress=False)
    assert caught.value.subgroup(ValueError) is not None


def test_ctrl_c_says_how_to_go_on(fake, tmp_path, capsys):
    assert main(["run", "stop", "--out", str(tmp_path)]) == 130
    assert "the same command goes on" in capsys.readouterr().err


# A quarter of the steps, as the smallest sweeps take, still fills the 20 blocks.
SMALL = Sizes(num_betas=5, transient=40, steps=80, num_networks=2, map_size=4, num_explored=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", [sweep.name for sweep in SWEEPS if sweep.name.startswith("attention-dynamics")])
def test_every_diagram_is_written_as_a_file_that_says_what_it_is(name, tmp_path, monkeypatch):
    monkeypatch.setattr(published, "QUICK", SMALL)
    compute([name], tmp_path, quick=True, num_threads=1, progress=False)
    with xr.open_dataset(tmp_path / f"{name}.nc", engine="scipy") as diagram:
        assert len(json.loads(diagram.attrs["networks"])[0]["semantic_signs"]) == 4
        assert diagram.sizes["beta"] >= 3
        assert np.isfinite(diagram.minimum).all()


@pytest.mark.parametrize("longer", [False, True])
def test_comparisons_are_those_of_the_record(longer, tmp_path, monkeypatch):
    from experiments.comparison import experiment

    asked = []
    monkeypatch.setattr(experiment, "compare", lambda plan, **options: asked.append(plan))
    compute(["comparison-longer" if longer else "comparison"], tmp_path, progress=False)
    assert asked == [experiment.LONGER if longer else experiment.FULL]
    rows = experiment.recorded(longer=longer)["rows"]
    assert [(row["module"], row["task"]) for row in rows] == [(m, t) for m in asked[0].modules for t in asked[0].tasks]


def test_help_works_in_an_empty_folder_and_imports_neither_dask_nor_what_the_book_needs(tmp_path):
    code = """
import sys
from experiments.__main__ import main
try:
    main(["run", "--help"])
except SystemExit as end:
    assert end.code == 0
needless = {"dask", "distributed", "jupytext", "sphinx", "torch", "numba"} & set(sys.modules)
assert not needless, needless
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--scheduler" in done.stdout
