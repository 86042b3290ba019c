"""Language models of spins: what rows share, what a steady state forgets, and runs that can be interrupted."""

from functools import partial, wraps

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import records
from experiments.comparison import transient
from experiments.comparison.transient import ALL, SMOKE, Row
from experiments.datasets import files, moby_dick

KEY = jax.random.key(3)
DEEP = SMOKE._replace(depth=2)
VANILLA = Row("vanilla")


pytestmark = pytest.mark.usefixtures("single")


def size(model):
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array)))


def test_all_rows_of_spins_begin_with_the_same_weights():
    first, moved = (transient.made(row, DEEP, KEY) for row in (Row("1"), Row("inf", field=True)))
    for other in (transient.made(row, DEEP, KEY) for row in (Row("random"), Row("2"), Row("1", beta=3.0))):
        assert eqx.tree_equal(eqx.filter(first, eqx.is_inexact_array), eqx.filter(other, eqx.is_inexact_array))
    np.testing.assert_array_equal(moved.stack.modules.memory.values, first.stack.modules.start.weight)
    np.testing.assert_array_equal(moved.stack.modules.memory.feed_forward.up, first.stack.modules.memory.up)
    for name in ("embedding", "readout"):
        np.testing.assert_array_equal(getattr(moved, name), getattr(first, name))
    assert size(moved) == size(first)
    another = transient.made(Row("1"), DEEP, jax.random.key(4))
    assert not np.array_equal(another.stack.modules.start.weight, first.stack.modules.start.weight)


def test_the_vanilla_twin_has_as_many_weights():
    sizes = [size(transient.made(row, ALL, KEY)) for row in (Row("1"), VANILLA)]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.002)
    assert round(sizes[0] / 1e6, 2) == 1.09


def test_embeddings_are_the_fields_of_the_first_layer():
    model = transient.made(Row("1", beta=3.0), SMOKE, KEY)
    characters = jnp.asarray(moby_dick.encode("the whale"))
    arrays, rest = eqx.partition(model.stack.modules, eqx.is_array)
    module = eqx.combine(jax.tree.map(lambda a: a[0], arrays), rest)
    x = model.bottom(characters)
    np.testing.assert_allclose(module.input_fields(x), model.embedding[characters], rtol=1e-5, atol=1e-6)
    spins = model.embedding.reshape(-1, SMOKE.num_heads, SMOKE.dim // SMOKE.num_heads)
    np.testing.assert_allclose(jnp.linalg.norm(spins, axis=-1), np.sqrt(SMOKE.dim / SMOKE.num_heads / 2 - 1), rtol=1e-6)


@pytest.mark.parametrize(("row", "use"), [(Row("1"), "2"), (Row("inf", field=True), "inf"), (VANILLA, "once")])
def test_no_site_hears_of_later_characters(row, use):
    model = transient.made(row, DEEP, KEY)
    first, second = (jnp.asarray(moby_dick.encode(text)) for text in ("call me", "call mr"))
    a, b = (model(text, use)[0] for text in (first, second))
    np.testing.assert_allclose(a[:-1], b[:-1], rtol=1e-4, atol=1e-5)
    assert float(jnp.max(jnp.abs(a[-1] - b[-1]))) > 1e-3
    # And the last one hears of the first.
    other = model(first.at[0].set(0), use)[0]
    assert float(jnp.max(jnp.abs(a[-1] - other[-1]))) > 1e-4


@pytest.mark.slow
def test_a_steady_state_forgets_the_values_unless_they_are_a_field():
    windows = jnp.asarray(transient.text_of(SMOKE).held_out[0])

    def slope(row, use):
        model = transient.made(row, SMOKE, KEY)
        gradient = eqx.filter_grad(lambda m: transient._loss(m, windows, use)[0])(model)
        modules = gradient.stack.modules
        values = modules.memory.values if row.field else modules.start.weight
        return float(jnp.linalg.norm(values)), float(jnp.linalg.norm(modules.to_queries_keys.weight))

    started, couplings = slope(Row("inf"), "inf")
    assert started == 0
    assert couplings > 1e-4
    assert slope(Row("1"), "1")[0] > 1e-4
    assert slope(Row("inf", field=True), "inf")[0] > 1e-4


def test_windows_are_those_of_the_seed_and_none_is_held_out():
    text, characters = transient.text_of(SMOKE), moby_dick.encode(moby_dick.sample())
    split = len(characters) * 9 // 10
    np.testing.assert_array_equal(text.train, characters[:split])
    windows = text.held_out.transpose(1, 0, 2).reshape(-1, SMOKE.length + 1)
    np.testing.assert_array_equal(windows[0], characters[split : split + SMOKE.length + 1])
    np.testing.assert_array_equal(windows[-1], characters[-SMOKE.length - 1 :])
    frequencies = np.bincount(characters[:split], minlength=36) / split
    entropy = -np.sum(frequencies[frequencies > 0] * np.log(frequencies[frequencies > 0]))
    assert text.blind == pytest.approx(entropy, abs=0.3)
    one, numbers = transient._batches(SMOKE, 1)
    assert one.shape == (SMOKE.updates, SMOKE.batch, SMOKE.length + 1)
    np.testing.assert_array_equal(one, transient._batches(SMOKE, 1)[0])
    assert not np.array_equal(one, transient._batches(SMOKE, 2)[0])
    # All of 1 to 8, and each about as often.
    many = transient._batches(SMOKE._replace(updates=4000), 1)[1]
    np.testing.assert_allclose(np.bincount(many, minlength=9)[1:], 500, atol=4 * np.sqrt(500))
    assert many.max() == 8
    np.testing.assert_array_equal(numbers, many[: SMOKE.updates])


def test_a_gradient_that_is_not_finite_changes_nothing():
    programs = transient._programs(VANILLA, SMOKE)
    windows, numbers = (jnp.asarray(a[:10]) for a in transient._batches(SMOKE, 1))
    windows = jnp.broadcast_to(windows[:1], windows.shape)
    params = eqx.filter(transient.made(VANILLA, SMOKE, KEY), eqx.is_inexact_array)
    (learnt, _), (losses, _, skipped) = programs.advance((params, programs.begin(params)), windows, numbers)
    assert not skipped.any()
    assert losses[-1] < losses[0]
    assert not np.array_equal(learnt.readout, params.readout)
    broken = eqx.tree_at(lambda p: p.gain, params, jnp.full_like(params.gain, jnp.inf))
    (same, _), (losses, _, skipped) = programs.advance((broken, programs.begin(broken)), windows, numbers)
    assert skipped.all()
    np.testing.assert_array_equal(same.readout, broken.readout)


@pytest.mark.slow
def test_a_row_of_random_numbers_makes_as_many_updates_as_it_draws():
    windows = jnp.asarray(transient._batches(SMOKE, 1)[0][:3])
    params = eqx.filter(transient.made(Row("random"), SMOKE, KEY), eqx.is_inexact_array)
    found = {}
    for row, number in ((Row("random"), 1), (Row("random"), 2), (Row("1"), 5), (Row("2"), 5)):
        programs = transient._programs(row, SMOKE)
        numbers = jnp.full(3, number, jnp.int32)
        found[row.trained, number] = programs.advance((params, programs.begin(params)), windows, numbers)[0][0]
    close = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-6)
    close(found["random", 1].readout, found["1", 5].readout)
    close(found["random", 2].readout, found["2", 5].readout)
    assert float(jnp.max(jnp.abs(found["random", 1].readout - found["random", 2].readout))) > 1e-4


@pytest.mark.slow
def test_a_record_has_every_run_and_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(transient, "USES", ("1", "inf"))
    design = SMOKE._replace(primary=(Row("1"),), beside=(VANILLA,))
    whole = transient.compare(design, folder=tmp_path)
    assert whole["complete"]
    names = [(run["row"], run["seed"]) for run in whole["runs"]]
    assert sorted(names) == [("1", 1), ("1", 2), ("vanilla", 1)]
    spins, twin = whole["runs"][0], whole["runs"][names.index(("vanilla", 1))]
    assert spins["uses"] == ["1", "inf"]
    assert np.shape(spins["held_out"]) == np.shape(spins["held_out_unsettled"]) == (2,)
    assert np.shape(spins["looks"]) == (3,)
    assert spins["looks"][-1] < spins["looks"][0]
    assert np.shape(spins["mismatch"]) == (3, 1, transient.STEPS, SMOKE.num_heads)
    distance = np.array(spins["distance"])
    assert distance.shape == (2, 1, transient.STEPS)
    assert (distance[..., 5] < 0.1 * distance[..., 0]).all()
    assert twin["uses"] == ["once"]
    assert "distance" not in twin
    assert "mismatch" not in whole["runs"][names.index(("1", 2))]
    assert records.read(tmp_path / "transient.json.gz")["runs"] == whole["runs"]
    # The weights are those after the last update.
    model = transient.restored(Row("1"), design, tmp_path / "weights-1-1.npz")
    batches = jnp.asarray(transient.text_of(design).held_out)
    again = [float(transient._loss(model, windows, "1")[0]) for windows in batches]
    assert np.mean(again) == pytest.approx(spins["held_out"][0], rel=1e-5)
    with pytest.raises(ValueError, match="path: expected weights of row vanilla of this design"):
        transient.restored(VANILLA, design, tmp_path / "weights-1-1.npz")
    assert not list((tmp_path / "unfinished").iterdir())
    # A run that is missing is made again, and no other.
    (tmp_path / "primary" / "task-000001.npz").unlink()
    trained, train = [], transient._batches
    noted = wraps(train)(lambda design, seed: trained.append(seed) or train(design, seed))
    monkeypatch.setattr(transient, "_batches", noted)
    after = transient.compare(design, folder=tmp_path)
    assert trained == [2]
    assert after["runs"][1]["held_out"] == whole["runs"][1]["held_out"]
    assert after["complete"]
    # One that is stopped in the middle goes on at its last look, to the same end.
    write, written = transient.Checkpoint.write, []

    def stop(checkpoint, carried, found):
        write(checkpoint, carried, found)
        written.append(len(found["losses"]))
        if len(written) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(transient.Checkpoint, "write", stop)
    with pytest.raises(KeyboardInterrupt):
        transient.compare(design, folder=tmp_path / "stopped")
    assert written == [10, 20, 10]
    assert len(list((tmp_path / "stopped" / "unfinished").iterdir())) == 1
    stopped = transient.compare(design, folder=tmp_path / "stopped")
    assert written == [10, 20, 10, 20, 10, 20]
    for one, other in zip(stopped["runs"], whole["runs"], strict=True):
        assert one | {"seconds": 0} == other | {"seconds": 0}


def test_a_checkpoint_of_another_sweep_is_none(tmp_path):
    ours, theirs = (transient.Checkpoint(tmp_path / "one.npz", name) for name in ("ours", "theirs"))
    carried = {"a": jnp.arange(3.0), "b": jnp.asarray(2)}
    assert ours.read(carried) is None
    ours.write(carried, {"losses": np.arange(4.0)})
    assert theirs.read(carried) is None
    back, found = ours.read(carried)
    assert eqx.tree_equal(back, carried)
    np.testing.assert_array_equal(found["losses"], np.arange(4.0))


@pytest.mark.parametrize("place", [0, 40, 300, -200, -1])
def test_a_damaged_checkpoint_is_set_aside_and_the_training_begins_anew(tmp_path, place):
    checkpoint, carried = transient.Checkpoint(tmp_path / "one.npz", "ours"), {"a": jnp.arange(3.0)}
    checkpoint.write(carried, {"losses": np.arange(4.0)})
    data = bytearray(checkpoint.path.read_bytes())
    data[place] ^= 16
    for damaged in (bytes(data), bytes(data)[:place]):
        checkpoint.path.write_bytes(damaged)
        with pytest.warns(UserWarning, match=r"one\.npz: expected a whole checkpoint, got .* one\.npz\.damaged; "):
            assert checkpoint.read(carried) is None
        assert (tmp_path / "one.npz.damaged").read_bytes() == damaged
        assert checkpoint.read(carried) is None
    checkpoint.write(carried, {})
    assert checkpoint.read(carried) is not None


def test_weights_that_are_damaged_are_refused_in_words(tmp_path):
    path = tmp_path / "weights.npz"
    np.savez(path, **{"weight.0": np.ones(3)})
    with pytest.raises(ValueError, match=r"path: expected weights of row 1 of this design, got shapes"):
        transient.restored(Row("1"), SMOKE, path)
    for damaged in (b"", b"word", path.read_bytes()[:100]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"path: expected a file of weights, got a damaged .*weights\.npz"):
            transient.restored(Row("1"), SMOKE, path)


def test_more_seeds_are_run_only_where_a_question_is_open(tmp_path, monkeypatch):
    ran = []

    def fake(run, design, checkpoint=None):
        ran.append(run)
        gap = 1.0 if run.row.trained != "1" else 0.0
        losses = np.array([[2 + gap + 0.1 * (use == "inf")] * 2 for use in run.row.uses])
        losses = losses + (0.2 * (-1) ** run.seed if opened and run.row.trained == "inf" else 0) * np.ones_like(losses)
        nothing = np.zeros(design.updates)
        return {
            "losses": nothing, "unsettled": nothing, "skipped": nothing, "looks": np.zeros(3), "held_out": losses,
            "held_out_unsettled": 0 * losses, "seconds": np.array(0.1), "parameters": np.array(5),
        }  # fmt: skip

    monkeypatch.setattr(transient, "train", fake)
    design = SMOKE._replace(least=5, most=8, beside=(), beside_seeds=0)
    opened = False
    record = transient.compare(design)
    assert record["complete"]
    assert {run.seed for run in ran} == {1, 2, 3, 4, 5}
    # Seed by seed, so that all rows of a seed are there before the next.
    assert [run.seed for run in ran] == sorted(run.seed for run in ran)
    ran.clear()
    # Steady states whose disadvantage swings around the margin.
    opened = True
    monkeypatch.setattr(transient.transient_questions, "MARGIN", 1.0)
    transient.compare(design)
    assert {run.seed for run in ran} == set(range(1, 9))


def test_a_missing_text_is_told_before_anything_is_run(monkeypatch):
    monkeypatch.delenv(files.ENVIRONMENT, raising=False)
    transient._text.cache_clear()
    monkeypatch.setattr(transient, "train", lambda run, design: pytest.fail("was run"))
    with pytest.raises(FileNotFoundError, match="moby-dick"):
        transient.compare(ALL)


def test_the_sweep_of_the_book_takes_the_plan(tmp_path, monkeypatch):
    from experiments.published import chosen

    asked = []
    monkeypatch.setattr(transient, "compare", lambda design, folder, **options: asked.append((design, folder, options)))
    (sweep,) = chosen(["nonequilibrium-transient"])
    for quick in (False, True):
        sweep.compute(tmp_path, quick, progress=False)
    folder = tmp_path / "nonequilibrium-transient"
    assert asked == [(ALL, folder, {"progress": False}), (SMOKE, folder, {"progress": False})]
