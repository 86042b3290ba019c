"""The depth experiment: what rows share, what counts, and a record that can be interrupted."""

import hashlib
import shutil
from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from experiments import records
from experiments.__main__ import main
from experiments.comparison import judging, transient
from experiments.datasets import moby_dick
from experiments.depth import cells, experiment, kneser_ney, questions, rows
from experiments.depth.experiment import LADDER, SMOKE

PLAN = (Path(__file__).resolve().parents[3] / "book" / "plan-of-depth.md").read_text(encoding="utf-8")
FEW = SMOKE._replace(rows=questions.GATE)


def leaves(model):
    return jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))


def test_rows_have_one_number_of_weights_and_one_start(single):
    size = LADDER[1]
    sizes = {}
    for name in rows.ROWS:
        made = partial(rows.made, name, size.depth, size.dim, size.num_heads)
        sizes[name] = sum(
            leaf.size
            for leaf in jax.tree.leaves(eqx.filter_eval_shape(made, key=jax.random.key(0)))
            if hasattr(leaf, "size")
        )
    assert max(sizes.values()) < 1.003 * min(sizes.values())
    models = {name: rows.made(name, 2, 16, 2, key=jax.random.key(1)) for name in rows.ROWS}
    for name, model in models.items():
        np.testing.assert_array_equal(model.embedding, models["vanilla"].embedding)
        np.testing.assert_array_equal(model.readout, models["vanilla"].readout)
        if name in ("free energy", "pure normalisation", "ReLU attention"):
            np.testing.assert_array_equal(model.stack.up, models["vanilla"].stack.up)
            np.testing.assert_array_equal(model.stack.to_output, models["vanilla"].stack.to_output)


@pytest.mark.parametrize("name", rows.ROWS)
def test_no_site_hears_of_later_characters(single, name):
    model = rows.made(name, 2, 16, 2, key=jax.random.key(2))
    logits = jax.jit(lambda characters: model(characters, rows.use(name))[0])
    first, second = (jnp.asarray(moby_dick.encode(text)) for text in ("call me", "call mr"))
    a, b = logits(first), logits(second)
    np.testing.assert_allclose(a[:-1], b[:-1], rtol=1e-4, atol=1e-5)
    assert float(jnp.max(jnp.abs(a[-1] - b[-1]))) > 1e-3
    # The last site hears of the first, but where nothing mixes.
    heard = float(jnp.max(jnp.abs(a[-1] - logits(first.at[0].set(0))[-1])))
    assert heard == 0 if name == "identity mixer" else heard > 1e-5


def test_mixers_are_what_their_formulas_say(single):
    q, k, v = np.random.default_rng(0).normal(size=(3, 2, 5, 4)).astype(np.float32)
    scales = np.array([[0.7, 1.3], [1.0, -0.4]], np.float32)
    for h in range(2):
        for i in range(5):
            s = k[h, : i + 1] @ q[h, i] / 2
            spread = np.sqrt(s.var() + 1e-5)
            weights = (scales[0, h] * (s - s.mean()) / spread + scales[1, h]) / (i + 1)
            found = rows.normalized(*map(jnp.asarray, (q, k, v, scales)))
            np.testing.assert_allclose(found[h, i], weights @ v[h, : i + 1], rtol=1e-4, atol=1e-6)
            kernel = (np.maximum(k[h, : i + 1], 0) + 1e-3) @ (np.maximum(q[h, i], 0) + 1e-3)
            found = rows.rectified(*map(jnp.asarray, (q, k, v)))
            np.testing.assert_allclose(found[h, i], kernel / kernel.sum() @ v[h, : i + 1], rtol=1e-4, atol=1e-6)


def test_the_causal_free_energy_solves_the_saddle_point_equations_of_couplings_that_look_back(single):
    q, k, v = 2 * np.random.default_rng(1).normal(size=(3, 1, 6, 4)).astype(np.float32)
    found = np.asarray(rows.free_energy(*map(jnp.asarray, (q, k, v))))[0] / 2
    J = np.tril(np.tanh(q[0] @ k[0].T / 2) / np.sqrt(6 * 4), -1)
    h = v[0] / np.sqrt((v[0] ** 2).sum(-1, keepdims=True) + 1e-5)

    def broken(log_t):
        inverse = np.linalg.inv(np.diag(np.exp(log_t)) - J)
        return np.diag(inverse) / 2 + ((inverse @ h / 2) ** 2).sum(-1) - 1

    t = np.exp(optimize.fsolve(broken, np.zeros(6), xtol=1e-12))
    np.testing.assert_allclose(found, np.linalg.inv(np.diag(t) - J) @ h / 2, rtol=1e-5, atol=1e-6)


def test_counting_is_scored_on_the_characters_that_stacks_are_scored_on():
    windows = experiment._windows(SMOKE, experiment.text(SMOKE).test).reshape(-1, SMOKE.length + 1)
    model = kneser_ney.counted(experiment.text(SMOKE).train, 3, num_symbols=36)
    ours = np.mean([kneser_ney.losses(model, w)[-SMOKE.length // 2 :].mean() for w in windows])
    assert experiment.count(SMOKE)[2]["test"] == pytest.approx(ours, abs=1e-12)


def test_the_best_rate_is_inside_the_rates_that_were_tried():
    def tried(loss):
        losses = {rate: loss(rate) for rate in cells.RATES[2:5]}
        while (further := cells.chosen(losses)[1]) is not None:
            losses[further] = loss(further)
        return cells.chosen(losses)[0], set(losses)

    inside = tried(lambda rate: abs(np.log(rate / 3e-3)))
    assert inside == (3e-3, {1e-3, 3e-3, 1e-2})
    assert tried(lambda rate: abs(np.log(rate / 1e-2))) == (1e-2, {1e-3, 3e-3, 1e-2, 3e-2})
    assert tried(lambda rate: abs(np.log(rate / 3e-4))) == (3e-4, {1e-4, 3e-4, 1e-3, 3e-3, 1e-2})
    assert tried(lambda rate: rate) == (1e-4, {1e-4, 3e-4, 1e-3, 3e-3, 1e-2})
    assert cells.chosen({1e-3: None, 3e-3: 2.0, 1e-2: None}) == (3e-3, None)


def test_a_record_goes_on_where_it_was_to_the_same_bits(tmp_path, monkeypatch, capsys):
    plan = tmp_path / "plan.md"
    plan.write_text("What is asked.")
    monkeypatch.setattr(experiment, "SMOKE", FEW)
    command = ["depth", "--quick", "--plan", str(plan), "--out"]
    assert main([*command, str(tmp_path / "whole")]) == 0
    shown, digest = capsys.readouterr().out, hashlib.sha256(b"What is asked.").hexdigest()
    whole = records.read(tmp_path / "whole" / "depth.json.gz")
    assert whole["plan"] == digest
    assert f"plan: SHA-256 {digest}\n" in shown
    assert {run["plan"] for run in whole["runs"]} == {digest}
    assert whole["complete"]
    runs = [run for run in whole["runs"] if run["stage"] == "run"]
    assert {(run["row"], run["seed"]) for run in runs} == {(row, seed) for row in FEW.rows for seed in FEW.seeds}
    assert all("test" not in run for run in whole["runs"] if run["stage"] == "trial")
    assert "gate: no" in shown or "gate: undecided" in shown
    # Stopped after the first look of its second run.
    write, seen = transient.Checkpoint.write, []

    def stop(checkpoint, carried, found):
        write(checkpoint, carried, found)
        seen.append(checkpoint.path.name)
        if checkpoint.path.name.startswith("run-identity"):
            raise KeyboardInterrupt

    monkeypatch.setattr(transient.Checkpoint, "write", stop)
    assert main([*command, str(tmp_path / "stopped")]) == 130
    unfinished = [path.name for path in (tmp_path / "stopped" / "unfinished").iterdir()]
    assert any(name.startswith("run-identity") for name in unfinished)
    assert not records.read(tmp_path / "stopped" / "depth.json.gz")["complete"]
    again = []
    monkeypatch.setattr(transient.Checkpoint, "write", lambda *what: (write(*what), again.append(what[0].path.name)))
    assert main([*command, str(tmp_path / "stopped")]) == 0
    stopped = records.read(tmp_path / "stopped" / "depth.json.gz")
    # Nothing that was done is trained again, and of the run that was stopped only what was missing.
    assert not set(again) & (set(seen) - set(unfinished))
    assert again.count(next(name for name in unfinished if name.startswith("run-identity"))) == 1
    for one, other in zip(stopped["runs"], whole["runs"], strict=True):
        assert one | {"seconds": 0} == other | {"seconds": 0}
    # The record alone is enough to go on from, with the plan and the sizes that it was made with.
    (tmp_path / "carried").mkdir()
    shutil.copy(tmp_path / "whole" / "depth.json.gz", tmp_path / "carried")
    again.clear()
    assert main([*command, str(tmp_path / "carried")]) == 0
    assert not again
    plan.write_text("Something else.")
    assert main([*command, str(tmp_path / "carried")]) == 2
    assert "expected a record of this plan and design" in capsys.readouterr().err


def test_trainings_side_by_side_are_those_that_each_is_alone():
    design = SMOKE._replace(dropped=0.2, replaced=0.1)
    its = [cells.Cell("run", "vanilla", rate, seed) for rate, seed in ((1e-2, 1), (1e-3, 2), (1e-2, 3))]
    together = experiment.train(its, design)
    for cell, found in zip(its, together, strict=True):
        (alone,) = experiment.train([cell], design)
        assert alone.keys() == found.keys()
        for name in alone.keys() - {"seconds"}:
            np.testing.assert_allclose(found[name], alone[name], rtol=2e-4, atol=2e-5, err_msg=name)
    assert np.abs(together[0]["losses"] - together[2]["losses"]).max() > 1e-2
    with pytest.raises(ValueError, match="its: expected cells of one row in one stage"):
        experiment.train([its[0], its[0]._replace(row="identity mixer")], design)


def test_weights_are_dropped_and_characters_replaced_as_often_as_the_design_says(single):
    params = {"map": jnp.ones((2, 60, 50)), "gains": jnp.ones((2, 2, 50)), "gain": jnp.ones(50)}
    first, second = (experiment._thinned(params, 0.2, jax.random.key(k)) for k in (0, 1))
    kept = first["map"] > 0
    np.testing.assert_allclose(first["map"][kept], 1.25, rtol=1e-6)
    # Five standard errors of a share among 6,000.
    assert float(jnp.mean(kept)) == pytest.approx(0.8, abs=5 * (0.16 / 6000) ** 0.5)
    assert float(jnp.mean(kept == (second["map"] > 0))) == pytest.approx(0.68, abs=0.05)
    for name in ("gains", "gain"):
        np.testing.assert_array_equal(first[name], params[name])
    windows = jnp.full((100, 60), 7)
    # One replacement in 36 is by the same character.
    changed = float(jnp.mean(experiment._blurred(windows, 0.1, jax.random.key(0)) != 7))
    assert changed == pytest.approx(0.1 * 35 / 36, abs=5 * (0.09 / 6000) ** 0.5)


def test_only_training_is_disturbed():
    plain, disturbed = (
        experiment.train([cells.Cell("run", "vanilla", 1e-3, 1)], design)[0]
        for design in (SMOKE, SMOKE._replace(dropped=0.5, replaced=0.5))
    )
    assert plain["looks"][0] == disturbed["looks"][0]
    assert plain["losses"][0] != disturbed["losses"][0]


def test_an_accelerator_trains_whole_rows_side_by_side_and_does_not_wait_for_the_gate(tmp_path, monkeypatch):
    plan = tmp_path / "plan.md"
    plan.write_text("What is asked.")
    design = SMOKE._replace(accelerator=True, rows=("vanilla", "identity mixer", "pure normalisation"))
    with pytest.raises(ValueError, match="ladder: expected a size for processors, or an accelerator, got smoke"):
        experiment.collect((design,), plan=plan)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    train, seen = experiment.train, []
    monkeypatch.setattr(experiment, "train", lambda its, *a, **b: seen.append(list(its)) or train(its, *a, **b))
    record = experiment.collect((design,), plan=plan, folder=tmp_path)
    assert record["complete"]
    runs = [(run["row"], run["seed"]) for run in record["runs"] if run["stage"] == "run"]
    assert sorted(runs) == sorted((row, seed) for row in design.rows for seed in design.seeds)
    assert {len({cell.row for cell in its}) for its in seen} == {1}
    assert [cell.seed for cell in seen[-1]] == [1, 2]
    assert all(len(its) >= len(design.seeds) for its in seen)


def outcome(losses, **changes):
    """A record of made-up runs, four seeds each, whose losses are these with a little noise of their own."""
    noise = np.random.default_rng(0).normal(scale=0.003, size=(len(losses), 4))
    runs = [
        {"stage": "run", "row": row, "seed": seed, "test": loss + noise[k, seed - 1], "skipped": 0, "unsettled": 0}
        for k, (row, loss) in enumerate(losses.items())
        for seed in (1, 2, 3, 4)
    ]
    counting = [{"validation": 1.5, "test": 1.45}, {"validation": 1.4, "test": 1.42}]
    return {"runs": runs, "design": {"seeds": (1, 2, 3, 4)}, "counting": counting, "blind": 3.0} | changes


LOSSES = dict(zip(rows.ROWS, (1.25, 2.3, 1.35, 1.6, 1.28, 1.24, 2.28), strict=True))


def test_the_gate_opens_only_if_vanilla_is_ahead_of_both():
    assert questions.gate(outcome(LOSSES)).opened == "yes"
    # Ahead of the wrong order of counting, which is worse in validation and in the test.
    assert questions.gate(outcome(LOSSES | {"vanilla": 1.335})).opened == "no"
    assert questions.gate(outcome(LOSSES | {"identity mixer": 1.3})).opened == "no"
    shut = outcome(LOSSES | {"vanilla": 1.4})
    assert questions.answers(shut) == ()
    with pytest.raises(ValueError, match="record: expected all runs of vanilla and identity mixer"):
        questions.gate(outcome({"vanilla": 1.2}))


def test_the_plan_says_what_is_run():
    sizes = [[size.name, size.depth, size.dim, size.length, size.updates, size.trial_updates] for size in LADDER]
    for size in sizes:
        assert f"| {' | '.join(f'{part:,}' if isinstance(part, int) else part for part in size)} |\n" in PLAN
    assert [size.accelerator for size in LADDER] == [False, False, True]
    assert {(size.seeds, size.rows, size.batch, size.num_heads) for size in LADDER} == {
        ((1, 2, 3, 4), rows.ROWS, 16, 4)
    }
    for name in rows.ROWS:
        assert f"\n| {name} | " in PLAN
    words = " ".join(PLAN.split())
    assert "trials from seed 0 with 0.001, 0.003 and 0.01;" in words
    assert cells.RATES == (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
    assert f"*in validation* by more than {experiment.RESERVE:g} nats" in words
    assert f"minus vanilla | {questions.GATE_MARGIN:g} nats, both |" in words
    assert f"loss of the row minus vanilla | {questions.MARGIN:g} nats |" in words
    assert "orders 1 to 6" in words
    # The best order is inside of what was tried, as the changes of the plan have it.
    counting = experiment.recorded()["counting"]
    assert [each["order"] for each in counting] == list(range(1, 10))
    assert min(counting, key=lambda each: each["validation"])["order"] == 8


def test_the_plan_says_what_keeps_the_large_size_from_learning_by_heart():
    size, words = experiment.REGULARISED, " ".join(PLAN.split())
    assert f"*large* with {size.updates:,} updates, {size.trial_updates:,} in a trial" in words
    assert f"zero with probability {size.dropped:g} in an update, the others divided by {1 - size.dropped:g}" in words
    assert f"replaced with probability {size.replaced:g} by any of the {len(moby_dick.ALPHABET)}" in words
    *first, last = size.rows
    assert f"The rows are {', '.join(first)} and {last}, each from the seeds 1, 2 and 3" in words
    assert size.seeds == (1, 2, 3)
    parts = ("depth", "dim", "length", "batch", "num_heads")
    assert [getattr(size, part) for part in parts] == [getattr(LADDER[2], part) for part in parts]


def test_rows_are_judged_together():
    found = {(f.row, f.question): f.decision for f in questions.answers(outcome(LOSSES))}
    assert [found[row, "behind"] for row in rows.ROWS[2:]] == ["yes", "yes", "undecided", "no", "yes"]
    assert [found[row, "mixes"] for row in rows.ROWS[2:]] == ["yes", "yes", "yes", "yes", "no"]
    # Only of the rows of a design is anything asked, and fewer questions leave more of the level to each.
    fewer = outcome(LOSSES, design={"seeds": (1, 2, 3, 4), "rows": ["vanilla", "identity mixer", "pure normalisation"]})
    assert {f.row for f in questions.answers(fewer)} == {"pure normalisation"}
    # A run that failed has the loss of guessing, and nothing rests on it alone.
    record = outcome(LOSSES)
    next(run for run in record["runs"] if (run["row"], run["seed"]) == ("pure normalisation", 2))["test"] = None
    lost = {f.question: f for f in questions.answers(record) if f.row == "pure normalisation"}
    assert lost["behind"].failed == (2,)
    assert lost["behind"].decision == "undecided"


def test_holm_is_the_closed_test_of_bonferroni():
    """A hypothesis is rejected where every set of hypotheses that it is in is, each by its least p value."""
    for p in np.random.default_rng(2).uniform(size=(200, 4)) ** 4:
        sets = [[k for k in range(4) if mask >> k & 1] for mask in range(1, 16)]
        closed = [all(p[s].min() < 0.05 / len(s) for s in sets if k in s) for k in range(4)]
        assert judging.holm(p, level=0.05).tolist() == closed
    with pytest.raises(ValueError, match="p_values: expected numbers from 0 to 1"):
        judging.holm([0.1, 1.5])
