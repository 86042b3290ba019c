"""The folder of a sweep under damage: nothing wrong is ever read, and what is damaged is computed anew."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from spinbook import sweep
from spinbook.sweep.storage import Store, plain

RESULT = {"x": np.arange(40.0), "y": np.float32(3), "z": np.ones((2, 0)), "word": "text"}


def square(x):
    return {"x": np.square(x)}


@pytest.fixture
def store(tmp_path):
    return Store.opened(tmp_path / "folder", {"identity": "a", "num_tasks": 3})


def assert_equal(ours, expected):
    assert list(ours) == list(expected)
    for name, array in plain(expected).items():
        assert ours[name].dtype == array.dtype
        assert np.array_equal(ours[name], array)


@pytest.mark.parametrize(
    "names",
    [
        ["allow_pickle", "file", "args", "kwds"],
        ["a", "a.npy", "a.npy.npy", ".npy", ""],
        ["with / slash", "../up", "/absolute", "ümlaut", "new\nline", "C:\\x"],
    ],
)
def test_results_may_have_any_name(store, names):
    result = {name: np.full(2, k) for k, name in enumerate(names)}
    store.write(0, plain(result))
    assert_equal(store.read(0), result)
    # And nothing was written anywhere else.
    assert sorted(path.name for path in store.folder.parent.rglob("*") if path.is_file()) == [
        "sweep.json",
        "task-000000.npz",
    ]


def test_a_result_is_a_file_that_numpy_reads(store):
    store.write(0, plain(RESULT))
    with np.load(store.folder / "task-000000.npz", allow_pickle=False) as arrays:
        assert_equal(dict(arrays), RESULT)


def test_equal_results_are_equal_files(store):
    store.write(0, plain(RESULT))
    first = (store.folder / "task-000000.npz").read_bytes()
    time.sleep(0.01)
    store.write(0, plain(RESULT))
    assert (store.folder / "task-000000.npz").read_bytes() == first


def damaged(data, number, random):
    """Flipped bits, bytes cut off, bytes added, blocks of zeros, blocks moved: ``number`` different ways."""
    for k in range(number):
        copy = bytearray(data)
        place = int(random.integers(len(copy)))
        kind = k % 8
        if kind < 4:
            copy[place] ^= 1 << int(random.integers(8))
        elif kind == 4:
            del copy[place:]
        elif kind == 5:
            copy += random.bytes(1 + place % 100)
        elif kind == 6:
            size = min(64, len(copy) - place)
            copy[place : place + size] = bytes(size)
        else:
            copy = copy[place:] + copy[:place]
        if copy != data:
            yield bytes(copy)


def test_no_damage_of_a_result_passes_and_none_is_an_error(store):
    store.write(0, plain(RESULT))
    path = store.folder / "task-000000.npz"
    count = 0
    for data in damaged(path.read_bytes(), 300, np.random.default_rng(300)):
        path.write_bytes(data)
        assert store.read(0) is None
        count += 1
    assert count > 270


@pytest.mark.slow
def test_every_single_bit_of_a_result_counts_and_every_byte_at_its_end(store):
    store.write(0, plain({"x": np.arange(3.0), "y": np.ones(2)}))
    path = store.folder / "task-000000.npz"
    data = path.read_bytes()
    for place in range(len(data)):
        for bit in range(8):
            copy = bytearray(data)
            copy[place] ^= 1 << bit
            path.write_bytes(copy)
            assert store.read(0) is None
        path.write_bytes(data[:place])
        assert store.read(0) is None


def test_a_result_under_another_number_or_of_another_sweep_does_not_count(store, tmp_path):
    store.write(0, plain(RESULT))
    data = (store.folder / "task-000000.npz").read_bytes()
    (store.folder / "task-000001.npz").write_bytes(data)
    assert store.read(0) is not None
    assert store.read(1) is None
    other = Store.opened(tmp_path / "other", {"identity": "b", "num_tasks": 3})
    (other.folder / "task-000000.npz").write_bytes(data)
    assert other.read(0) is None


def test_every_damage_of_the_description_is_a_clear_error(store):
    path = store.folder / "sweep.json"
    data = path.read_bytes()
    about = {"identity": "a", "num_tasks": 3}
    for copy in damaged(data, 300, np.random.default_rng(300)):
        path.write_bytes(copy)
        with pytest.raises(ValueError, match=r"^folder: expected a sweep.json that can be read .*got a damaged one"):
            Store.opened(store.folder, about)


def test_the_folder_of_another_sweep_is_refused_and_says_what_differs(tmp_path):
    sweep.run(square, [1.0, 2.0], folder=tmp_path, identity="one")
    before = (tmp_path / "sweep.json").read_bytes()
    for tasks, identity, differs in (
        ([1.0, 2.0], "two", "identity"),
        ([1.0], "one", "num_tasks, tasks"),
        ([1.0, 3.0], "one", "tasks"),
    ):
        with pytest.raises(
            ValueError, match=f"folder: expected an empty one or one with this very sweep.*differs in {differs}.$"
        ):
            sweep.run(square, tasks, folder=tmp_path, identity=identity)
    assert (tmp_path / "sweep.json").read_bytes() == before


def test_results_without_a_description_are_refused(tmp_path):
    sweep.run(square, [1.0, 2.0], folder=tmp_path, identity="one")
    (tmp_path / "sweep.json").unlink()
    with pytest.raises(ValueError, match=r"folder: expected an empty one.*got results without the sweep.json"):
        sweep.run(square, [1.0, 2.0], folder=tmp_path, identity="one")
    # Files of others are no hindrance.
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "notes.txt").write_text("mine")
    assert len(sweep.run(square, [1.0], folder=tmp_path / "new")) == 1
    with pytest.raises(ValueError, match="folder: expected a folder, got the file"):
        sweep.run(square, [1.0], folder=tmp_path / "new" / "notes.txt")


def test_what_was_never_finished_is_swept_away_unless_somebody_is_writing_it(store):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    from spinbook.sweep import storage

    def unfinished(host, process):
        path = store.folder / f".unfinished-{host}-{process}-0123abcd"
        path.write_bytes(b"half")
        return path

    dead = unfinished(storage._host(), ended.pid)
    mine = unfinished(storage._host(), os.getpid())
    elsewhere = unfinished("another.machine", ended.pid)
    old = unfinished("another_machine", 1)
    unnamed = store.folder / ".unfinished-xyz"
    unnamed.write_bytes(b"")
    for path in (old, unnamed):
        os.utime(path, (time.time() - 7200,) * 2)
    Store.opened(store.folder, {"identity": "a", "num_tasks": 3})
    assert [path.exists() for path in (dead, mine, elsewhere, old, unnamed)] == [False, True, True, False, False]


def test_a_file_swept_away_by_another_machine_is_written_again(store, monkeypatch):
    replace, calls = os.replace, []

    def vanish_once(source, target):
        calls.append(source)
        if len(calls) == 1:
            os.unlink(source)
        replace(source, target)

    monkeypatch.setattr(os, "replace", vanish_once)
    store.write(0, plain(RESULT))
    assert_equal(store.read(0), RESULT)
    assert len(calls) == 2


def test_a_result_that_cannot_be_written_leaves_no_trace(store, monkeypatch):
    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        store.write(0, plain(RESULT))
    assert [path.name for path in store.folder.iterdir()] == ["sweep.json"]


def test_what_is_no_file_is_no_result_and_no_description(store):
    path = store.folder / "task-000000.npz"
    os.mkfifo(path)
    assert store.read(0) is None
    store.write(0, {"x": np.arange(2)})
    assert store.read(0)["x"].tolist() == [0, 1]
    description = store.folder / "sweep.json"
    description.unlink()
    os.mkfifo(description)
    assert not store.is_here()
    with pytest.raises(ValueError, match=r"^folder: expected a sweep.json that can be read .*sweep.json is no file"):
        Store.opened(store.folder, {"identity": "a", "num_tasks": 3})


@pytest.mark.parametrize("text", ["[]", "3", "null", '"word"'])
def test_a_description_of_anything_else_is_a_damaged_one(store, text):
    (store.folder / "sweep.json").write_text(text)
    with pytest.raises(ValueError, match=r"^folder: expected a sweep.json that can be read .*it describes no sweep"):
        Store.opened(store.folder, {"identity": "a", "num_tasks": 3})
