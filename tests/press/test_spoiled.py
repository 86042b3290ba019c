"""No file that a person writes can make the checks before a run end in a traceback, hang, or point elsewhere."""

import os
import random
import shutil
import signal
from pathlib import Path

import pytest
import yaml

from companion import __main__ as command
from companion import build, check
from companion.declaring import notebooks
from toybook import ToyBook, add_audit, write_toy_book

FILES = (
    "_config.yml",
    "_toc.yml",
    "book/claims/probe.yml",
    "book/claims.md",
    "book/compared.yml",
    "book/index.md",
    "book/items/author2000source.yml",
    "book/references.bib",
    "book/releases/0.0.1.json",
    "book/releases/reasons.yml",
    "book/sources.yml",
    "notebooks/audits/probe.md",
    "notebooks/probe.ipynb",
    "notebooks/probe.md",
    "src/walks/__init__.py",
    "src/walks/pairs.py",
    "CITATION.cff",
    "requirements.lock",
)
STRANGE = (None, True, 3, -1.5, float("nan"), "", "two\nlines", [], ["x"], [[]], {}, {"a": 1}, {"x": [{"y": None}]})


def places(content, path=()):
    """The path to every value in a YAML content."""
    yield path
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


def other_value(rng, text):
    """The text with a value of another type somewhere: in its YAML, or in that of its front matter."""
    before, dashes, rest = ("", "", text) if not text.startswith("---\n") else ("", "---\n", text[4:])
    head, fence, after = rest.partition("\n---\n") if dashes else (rest, "", "")
    try:
        content = yaml.safe_load(head)
    except yaml.YAMLError:
        return text[: len(text) // 3]
    path = rng.choice(list(places(content)))
    value = rng.choice(STRANGE)
    if not path:
        content = value
    else:
        holder = content
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = value
    return f"{before}{dashes}{yaml.safe_dump(content, sort_keys=False)}{fence}{after}"


def amid(insert):
    """Put something between two letters at random."""

    def spoil(rng, text):
        at = rng.randrange(len(text) + 1)
        return text[:at].encode() + insert + text[at:].encode()

    return spoil


def lines(change):
    def spoil(rng, text):
        listed = text.splitlines(keepends=True)
        at = rng.randrange(max(len(listed), 1))
        return "".join([*listed[:at], *change(listed[at : at + 1]), *listed[at + 1 :]])

    return spoil


TEXTS = {
    "cut": lambda rng, text: text[: rng.randrange(len(text) + 1)],
    "empty": lambda rng, text: "",
    "a list": lambda rng, text: "- a\n- [b, {c: d}]\n",
    "a mapping": lambda rng, text: "a: {b: [c]}\n",
    "another value": other_value,
    "yet another value": other_value,
    "a byte that is no UTF-8": amid(b"\xff"),
    "a NUL": amid(b"\0"),
    "a line twice": lines(lambda listed: listed * 2),
    "a line indented": lines(lambda listed: [f"   {line}" for line in listed]),
    "a bracket": amid(b"["),
    "a quotation mark": amid(b'"'),
    "deep brackets": lambda rng, text: text + "\nx: " + "[" * 100_000,
    "deep parentheses": lambda rng, text: text + "\n" + "(" * 5_000,
    "a bomb of anchors": lambda rng, text: (
        "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))
    ),
    "an anchor in itself": lambda rng, text: "a: &a [*a]\n",
    "a number of 5,000 digits": lambda rng, text: text + f"\nx: {'9' * 5000}\n",
    "a tag": lambda rng, text: text + "\nx: !!python/object/apply:os.getcwd []\n",
    "UTF-16": lambda rng, text: text.encode("utf-16"),
}


def replaced_by(make):
    def spoil(path):
        path.unlink()
        make(path)

    return spoil


PLACES = {
    "nothing": replaced_by(lambda path: None),
    "a folder": replaced_by(lambda path: path.mkdir()),
    "a pipe": replaced_by(os.mkfifo),
    "a link that leads nowhere": replaced_by(lambda path: path.symlink_to("nowhere")),
    "a link to itself": replaced_by(lambda path: path.symlink_to(path.name)),
}
CASES = [(file, how) for file in FILES for how in (*TEXTS, *PLACES)]
NAMED = ("a byte that is no UTF-8", "a NUL", "a folder", "a pipe", "a link that leads nowhere")
"""What is said of the file itself, whatever it is, where the checks read it."""
UNREAD = ("CITATION.cff", "notebooks/probe.ipynb", "requirements.lock")
"""What no check before a run needs to read, or compares only."""


class Reached(Exception):
    """Every check was passed, and a kernel would start now."""


class Hung(Exception):
    """A check took too long."""


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    book = add_audit(write_toy_book(tmp_path_factory.mktemp("spoiled") / "book"))
    book.path("book/releases").mkdir()
    book.path("book/releases/reasons.yml").write_text("probe.top: The source was read again.\n")
    book.path("book/releases/0.0.1.json").write_text('{"version": "0.0.1", "commit": "x", "claims": [], "retired": []}')
    notebooks.sync(book.root)
    assert check.book(book.root, only="probe") == []
    return book.root


def checked(book, capsys):
    """Status and words of every command up to the moment in which a kernel would start."""
    found = []
    for line in (["check", "probe"], ["book"], ["check-sync"], ["why", "probe.top"]):
        try:
            status = command.main(["--root", str(book.root), *line])
        except Reached:
            status = 0
        said = capsys.readouterr()
        found.append((" ".join(line), status, said.out + said.err))
    return found


@pytest.fixture
def limited(monkeypatch):
    def reached(*_):
        raise Reached

    def hung(*_):
        raise Hung

    monkeypatch.setattr(build, "_run", reached)
    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def spoiled(file, how, template, target):
    shutil.copytree(template, target)
    path = target / file
    if how in PLACES:
        PLACES[how](path)
    else:
        rng = random.Random(f"{file} {how}")
        made = TEXTS[how](rng, path.read_text(encoding="utf-8"))
        path.write_bytes(made if isinstance(made, bytes) else made.encode())
    return ToyBook(target)


def refused_in_words(file, how, template, target, capsys):
    for line, status, said in checked(spoiled(file, how, template, target), capsys):
        assert status in (0, 1, 2), line
        assert "Traceback" not in said
        assert status == 0 or said.strip(), f"{line}: refused without a word"
        assert len(said) < 20_000
        if how in NAMED and file not in UNREAD and line in ("check probe", "book"):
            assert status != 0
            assert Path(file).stem in said, f"{line}: {said}"


@pytest.mark.parametrize("place", range(0, len(CASES), 17))
def test_a_spoiled_file_is_refused_in_words(place, template, tmp_path, capsys, limited):
    refused_in_words(*CASES[place], template, tmp_path / "book", capsys)


@pytest.mark.parametrize("file", ["book/index.md", "book/references.md", "src/walks/__init__.py", "src"])
def test_a_file_that_is_gone_is_named_before_a_kernel_starts(file, template, tmp_path, capsys, limited):
    shutil.copytree(template, root := tmp_path / "book")
    (shutil.rmtree if file == "src" else os.remove)(root / file)
    for line, status, said in checked(ToyBook(root), capsys)[:2]:
        assert status != 0, line
        assert "Traceback" not in said
        assert file in said.splitlines()[0], said


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_every_way_to_spoil_a_file_is_refused_in_words(file, template, tmp_path, capsys, limited):
    signal.alarm(0)
    for number, (_, how) in enumerate(case for case in CASES if case[0] == file):
        signal.alarm(60)
        try:
            refused_in_words(file, how, template, tmp_path / str(number), capsys)
        except Exception as error:
            raise AssertionError(f"{file}: {how}") from error
        shutil.rmtree(tmp_path / str(number))
