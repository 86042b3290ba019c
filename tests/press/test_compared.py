"""Our figures beside the published ones: every one that has a source says how they compare."""

import pytest

from companion.declaring import compared

CHAPTERS = ["one", "one-more", "two"]
FIGURES = [
    {"id": "one-line", "chapter": "one", "source": "Figure 1"},
    {"id": "one-own", "chapter": "one", "source": "this book"},
    {"id": "one-more-line", "chapter": "one-more", "source": "Figure 2"},
]
WHOLE = {"one-line": "{agrees: Yes., claims: [one.a]}", "one-more-line": "{agrees: Yes., differs: No.}"}


def problems(root, entries, *, wanted=CHAPTERS, finished=("one", "one-more")):
    (root / "book").mkdir(exist_ok=True)
    (root / "book" / compared.NAME).write_text("".join(f"{id}: {entry}\n" for id, entry in entries.items()))
    said = [f"{one.file}: {one.message}" for one in compared.findings(root, {"one.a"})]
    return said + compared.problems(root, FIGURES, CHAPTERS, wanted, finished)


BROKEN = {
    "a figure that nobody published": ({"one-gone": "{agrees: x}"}, "one-gone: no such figure is published"),
    "a figure of no chapter": ({"three-line": "{agrees: x}"}, "three-line: no such figure is published"),
    "a claim that is not declared": (
        {"one-line": "{agrees: x, claims: [one.a, one.b]}"},
        "one-line: claims: unknown claim 'one.b'",
    ),
    "a word that is no key": ({"one-own": "{agree: x}"}, "one-own: Additional properties are not allowed ('agree'"),
    "neither word": ({"one-own": "{claims: [one.a]}"}, "one-own: {'claims': ['one.a']} is not valid under any"),
    "an empty sentence": ({"one-own": "{agrees: }"}, "one-own: agrees: None is not of type 'string'"),
    "a number for a sentence": ({"one-own": "{differs: 3}"}, "one-own: differs: 3 is not of type 'string'"),
    "one claim without a list": (
        {"one-own": "{agrees: x, claims: one.a}"},
        "one-own: claims: 'one.a' is not of type 'array'",
    ),
    "no entry at all": ({"one-own": ""}, "one-own: None is not of type 'object'"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_an_entry_is_refused_that_has(tmp_path, case):
    change, message = BROKEN[case]
    assert problems(tmp_path, WHOLE) == []
    (found,) = problems(tmp_path, WHOLE | change)
    assert found.startswith(f"{compared.NAME}: {message}")


def test_a_figure_with_a_source_needs_an_entry_and_one_of_this_book_does_not(tmp_path):
    assert problems(tmp_path, {}) == [
        f"{compared.NAME}: {id}: no entry, but its source is {source!r}"
        for id, source in (("one-line", "Figure 1"), ("one-more-line", "Figure 2"))
    ]


def test_what_is_not_known_of_chapters_without_a_result_is_not_refused(tmp_path):
    entries = WHOLE | {"two-line": "{agrees: x}", "one-more-gone": "{agrees: x}"}
    assert problems(tmp_path, entries, wanted=["one"]) == []
    assert problems(tmp_path, entries) == [f"{compared.NAME}: one-more-gone: no such figure is published"]
    assert problems(tmp_path, {}, wanted=["one"])[1:] == [], "the other chapter is not asked for"


def test_a_malformed_entry_is_left_out_and_lines_are_joined(tmp_path):
    problems(tmp_path, {"one-line": ">-\n  x", "one-own": "{agrees: 'two\n  lines.'}"})
    assert compared.read(tmp_path) == {"one-own": compared.Comparison("two lines.", "", ())}
