"""Programs that are kept from run to run: lent whole, by their digest, and to processors of one kind."""

from companion.running import compiled


def test_a_program_is_lent_as_it_was_kept_and_a_damaged_one_is_forgotten(tmp_path):
    made, kept = tmp_path / "made", tmp_path / "kept"
    made.mkdir()
    for name in ("one-cache", "two-cache"):
        (made / name).write_bytes(name.encode() * 9)
    (made / "one-atime").touch()
    compiled.keep(made, kept)
    (one,) = kept.glob("one-*")
    one.write_bytes(one.read_bytes().replace(b"one", b"onf", 1))
    compiled.lend(kept, tmp_path / "lent")
    assert {path.name: path.read_bytes() for path in (tmp_path / "lent").iterdir()} == {"two-cache": b"two-cache" * 9}
    compiled.keep(made, kept)
    compiled.lend(kept, tmp_path / "again")
    assert {path.name for path in (tmp_path / "again").iterdir()} == {"one-cache", "two-cache"}


def test_all_are_forgotten_when_there_are_too_many(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "LARGEST", 5)
    for name in ("one-cache", "two-cache"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_bytes(b"12345678")
        compiled.keep(tmp_path / name, tmp_path / "kept")
    assert [path.stem for path in (tmp_path / "kept").iterdir()] == ["two-cache"]
