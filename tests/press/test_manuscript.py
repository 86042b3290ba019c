"""What editors leave beside a file is no part of the book, and what a person writes leads nowhere but to pages."""

import os
import shutil
from pathlib import Path

import pytest

from companion import __main__ as command
from companion import check, manuscript, project
from companion.declaring import notebooks
from companion.running import disk, execution, freshness
from companion.site import pages, rendering
from toybook import git

ROOT = Path(__file__).resolve().parents[2]


def leave_behind(book):
    """Locks, backups and notes of editors and of file managers in every folder that a person writes in."""
    for folder in (
        "book",
        "book/_static/mathjax",
        "book/claims",
        "book/items",
        "notebooks",
        "notebooks/audits",
        "src/walks",
        ".",
    ):
        for path in sorted(book.path(folder).glob("*.*")):
            if path.is_file() and manuscript.is_ours(path.name):
                path.with_name(f".#{path.name}").symlink_to("somebody@nowhere.1234:5678")
                for name in (f"._{path.name}", f"{path.name}~", f"#{path.name}#", f".{path.name}.swp", ".DS_Store"):
                    path.with_name(name).write_bytes(b"\x00\x05\x16\x07\xff")


def test_what_editors_leave_behind_is_no_part_of_the_book(audited):
    pages_of, key = notebooks.names(audited.root), freshness.key(audited.root, notebooks.load(audited.root, "probe"))
    rendered = rendering._key(audited.root, {})
    leave_behind(audited)
    assert len(list(audited.root.rglob("*.md~"))) == 8
    assert check.book(audited.root, only="probe") == []
    assert notebooks.names(audited.root) == pages_of
    assert freshness.key(audited.root, notebooks.load(audited.root, "probe")) == key
    assert rendering._key(audited.root, {}) == rendered
    assert notebooks.sync(audited.root) == []
    assert command.main(["--root", str(audited.root), "why", "probe.top"]) == 0


@pytest.mark.slow
def test_a_built_book_stays_as_it_is_when_an_editor_is_open(copy):
    leave_behind(copy)
    outcome, printed = copy.build()
    assert (outcome.problems, outcome.executed, outcome.rendered) == ([], [], False), printed
    copy.edit("book/claims.md", "# Claims", "# All claims")
    outcome, printed = copy.build()
    assert (outcome.problems, outcome.executed, outcome.rendered) == ([], [], True), printed
    assert [path.name for path in copy.path("_build/html").rglob("*") if not manuscript.is_ours(path.name)] == [
        ".nojekyll"
    ]


def test_git_ignores_what_editors_leave_behind_and_links_to_a_build_folder_and_an_environment_elsewhere(tmp_path):
    git(tmp_path, "init", "-q")
    shutil.copy(ROOT / ".gitignore", tmp_path)
    for name in (".#index.md", "._index.md", "index.md~", "#index.md#", ".index.md.swp", ".DS_Store"):
        (tmp_path / name).touch()
    for name in ("_build", ".venv"):
        (tmp_path / name).symlink_to(tmp_path)
    assert git(tmp_path, "status", "--porcelain").split() == ["??", ".gitignore"]


UNREADABLE = {
    "book/compared.yml": ("- a list\n", "expected ids of figures with what agrees and differs, got a list"),
    "book/releases/reasons.yml": ("probe.top: [a]\n", "probe.top: expected a sentence, got ['a']"),
    "book/references.bib": (
        "@misc{one,\n  author = {A},\n",
        "expected @KIND{KEY, ...} with as many { as }, got 'misc{one,'",
    ),
    "book/claims/probe.yml": ("format: 2\nclaims: [\n", "expected YAML: did not find expected node content"),
    "book/claims/other.yml": (b"\xff", "expected text in UTF-8, got the byte 0xff"),
    "book/index.md": (b"# A\n\xe9\n", "expected text in UTF-8, got the byte 0xe9"),
    "_toc.yml": ("", "root: expected the first page, a file in book, got None"),
    "_config.yml": ("title: A\ncompanion:\n", "companion: expected library and some of"),
    "book/sources.yml": ("- {key: a, key: b}\n", "expected YAML: every key once, got 'key' twice"),
    "book/items/author2000source.yml": ("- " * 20_000 + "x", "expected YAML: nested more than 50 levels deep"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_cannot_be_read_is_named_and_nothing_is_derived_from_it(audited, name, capsys):
    content, message = UNREADABLE[name]
    path = audited.path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert command.main(["--root", str(audited.root), "book"]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) == 1
    assert said.startswith(f"error: {name}")


def test_what_is_no_file_is_said_before_it_is_opened(toy_book):
    os.mkfifo(toy_book.path("book/notes.md"))
    toy_book.path("book/claims/more.yml").mkdir()
    toy_book.path("book/picture.png").symlink_to("nowhere")
    assert {(one.file, one.message) for one in check.unreadable(toy_book.root)} == {
        ("book/notes.md", "expected a file, got a pipe, a socket or a device"),
        ("book/claims/more.yml", "expected a file, got a folder"),
        ("book/picture.png", "expected a file, got a link that leads nowhere"),
    }


def test_anchors_may_repeat_little_and_not_themselves(tmp_path):
    path = tmp_path / "a.yml"
    path.write_text("a: &a [1, 2]\nb: *a\n")
    assert manuscript.mapping(path, "words") == {"a": [1, 2], "b": [1, 2]}
    nines = "".join(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 7))
    path.write_text(f"- &a0 [x]\n{nines}")
    with pytest.raises(manuscript.Unreadable, match="at most 300000 values"):
        manuscript.entries(path)
    path.write_text("a: &a [*a]\n")
    with pytest.raises(manuscript.Unreadable, match=r"^a\.yml:1: expected YAML: at most 300000 values, 50 levels deep"):
        manuscript.mapping(path, "words")


@pytest.mark.parametrize("page", ["../probe", "/etc/passwd", "notebooks/../../probe", 3, "a b"])
def test_a_page_of_the_contents_lies_in_the_repository(toy_book, page):
    toy_book.edit("_toc.yml", "file: book/claims", f"file: {page}")
    with pytest.raises(ValueError, match=r"^_toc\.yml: file: expected a page, as notebooks/NAME, got "):
        notebooks.pages(toy_book.root)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", 3])
def test_the_data_of_a_page_lie_in_the_repository(toy_book, name):
    toy_book.chapter.write_text(toy_book.chapter.read_text().replace("  budget:", f"  data: [{name}]\n  budget:"))
    with pytest.raises(ValueError, match=r"probe\.md: .*data.*: expected a file of the repository, got "):
        notebooks.load(toy_book.root, "probe")


SAFE = (
    "https://example.org",
    "http://example.org",
    "mailto:a@example.org",
    "#top",
    "../index.html",
    "a:b.html"[2:],
    "?q=a:b",
)
UNSAFE = (
    "javascript:alert(1)",
    "JavaScript:x",
    "java\nscript:x",
    " javascript:x",
    "vbscript:x",
    "data:text/html,x",
    "file:///etc",
    "ftp://a",
)


def test_a_link_leads_to_a_page_the_web_or_a_mailbox(tmp_path):
    (tmp_path / "figures" / "a").mkdir(parents=True)
    page, drawing = tmp_path / "index.html", tmp_path / "figures" / "a" / "a.svg"
    for markup in (
        '<a href="{}">x</a>',
        '<area href="{}">',
        '<form action="{}"></form>',
        '<iframe src="{}"></iframe>',
        '<object data="{}"></object>',
        '<button formaction="{}">',
        '<meta http-equiv="refresh" content="0; url={}">',
    ):
        for link in UNSAFE:
            page.write_text(markup.format(link))
            assert len(pages.unsafe_links(tmp_path)) == 1, (markup, link)
        page.write_text("".join(map(markup.format, SAFE)))
        assert pages.unsafe_links(tmp_path) == []
    page.write_text('<img src="data:image/png;base64,xx">')
    assert pages.unsafe_links(tmp_path) == []
    drawing.write_text(
        '<svg><a xlink:href="javascript&#58;x"/><use href="#a"/><image href="data:image/png;base64,xx"/></svg>'
    )
    assert pages.unsafe_links(tmp_path) == ["figures/a/a.svg: javascript:x"]


def test_an_address_of_a_source_is_one_of_the_web(audited):
    audited.edit("book/sources.yml", "https://example.org/source", "javascript:alert(1)")
    assert [one.message for one in check.declarations(audited.root)] == [
        r"author2000source: address: 'javascript:alert(1)' does not match '^https?://\\S+$'"
    ]
    audited.edit("book/references.bib", "  howpublished", "  url = {javascript:alert(1)},\n  howpublished")
    with pytest.raises(ValueError, match=r"references\.bib:1: author2000source: url: expected an address, https://"):
        project.references(audited.root)


@pytest.mark.slow
def test_no_unsafe_link_of_a_page_takes_the_place_of_a_good_site(copy):
    before = disk.digests(copy.path("_build/html"))
    copy.edit("book/claims.md", "# Claims\n", '# Claims\n\nA <a href="javascript:alert(1)">link</a>.\n')
    outcome, _ = copy.build()
    assert [problem for problem in outcome.problems if "unsafe" in problem] == [
        "unsafe link: book/claims.html: javascript:alert(1)"
    ]
    assert disk.digests(copy.path("_build/html")) == before


def test_a_build_folder_that_is_none_is_said(toy_book, capsys):
    for make, words in ((Path.touch, "a file"), (lambda path: path.symlink_to("nowhere"), "a link that leads nowhere")):
        make(toy_book.path("_build"))
        assert command.main(["--root", str(toy_book.root), "book"]) == 2
        assert capsys.readouterr().err == f"error: _build: expected a folder, or nothing, got {words}\n"
        toy_book.path("_build").unlink()


def test_what_cannot_be_copied_is_said_in_a_sentence():
    error = shutil.Error([("a", "b", "[Errno 28] No space left on device"), ("c", "d", "x"), ("e", "f", "x")])
    assert disk.sentence(error) == "b: it cannot be copied ([Errno 28] No space left on device), and 2 more"


def test_a_path_that_is_not_in_utf_8_is_refused_before_anything_runs(toy_book, capsys):
    root = toy_book.root.with_name(os.fsdecode(b"caf\xe9"))
    toy_book.root.rename(root)
    assert command.main(["--root", str(root), "book"]) == 2
    assert capsys.readouterr().err.startswith("error: --root: expected a path in UTF-8, got ")


def test_equal_sites_have_equal_files(built):
    assert not built[0].path("_build/html/.buildinfo").exists()


def test_a_kernel_reads_no_settings_and_no_module_that_no_key_covers(toy_book, tmp_path, monkeypatch):
    root = tmp_path / "a {b} {0} c"
    toy_book.root.rename(root)
    (root / "src" / "sitecustomize.py").write_text("import builtins\n\nbuiltins.LENGTH = 3.0\n")
    chosen = execution._environment

    def with_settings(root, chapter, folder, *others):
        variables = chosen(root, chapter, folder, *others)
        config = folder / "kernel" / "ipython" / "profile_default" / "ipython_kernel_config.py"
        config.write_text("c.InteractiveShellApp.exec_lines = ['size = 3']\n")
        return variables

    monkeypatch.setattr(execution, "_environment", with_settings)
    chapter, work = notebooks.load(root, "probe"), root / "run"
    assert execution.run(root, chapter, work) is None
    refused = execution._unseen(root, chapter, work)
    assert "settings of IPython read but not covered by the freshness key: [" in refused
    assert "ipython_kernel_config.py" in refused
    progress = (work / "progress.json").read_text()
    start = progress.index('"settings": [')
    (work / "progress.json").write_text(progress[:start] + '"settings": []}')
    refused = execution._unseen(root, chapter, work)
    assert "files of the repository opened but not covered by the freshness key: ['src/sitecustomize.py']" in refused


def test_the_key_knows_what_a_kernel_is_given_and_what_python_runs_of_itself(toy_book, tmp_path, monkeypatch):
    chapter = notebooks.load(toy_book.root, "probe")
    made_of = freshness.ingredients(toy_book.root, chapter)
    assert all(callable(getattr(execution, name)) for name in freshness._RUNS)
    assert len(made_of["runner"]) == len(freshness._RUNS)
    monkeypatch.setattr(freshness.site, "getsitepackages", lambda: [str(tmp_path)])

    def customised():
        freshness._customised.cache_clear()
        return freshness.ingredients(toy_book.root, chapter)

    bare = customised()
    (tmp_path / "paths.pth").write_text("/somewhere\n")
    assert customised() == bare
    (tmp_path / "code.pth").write_text("import os; os.environ['A'] = 'b'\n")
    (with_code := customised())
    (tmp_path / "usercustomize.py").write_text("a = 1\n")
    with_module = customised()
    (tmp_path / "usercustomize.py").write_text("a = 2\n")
    assert len({freshness.key_of(one) for one in (bare, with_code, with_module, customised())}) == 4
    assert len({freshness.evidence_key(one) for one in (bare, with_code, with_module)}) == 1
    freshness._customised.cache_clear()
