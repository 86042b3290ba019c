"""What the keys and words in the records for programs stand for."""

import re

import pytest

from companion import project
from companion.declaring import notebooks
from companion.site import catalogue
from toybook import REPOSITORY

WORKS = {
    "one2000": {"author": "One, Ann", "year": "2000", "title": "Alone"},
    "two2001": {"author": "One, Ann and Two, Bob", "year": "2001", "title": "In company"},
    "many2002": {"author": "One, Ann and Two, Bob and Three, Cy", "year": "2002", "title": "In a crowd"},
    "first2003": {"author": "Four, Di", "year": "2003", "title": "Spheres of many sizes"},
    "second2003": {"author": "Four, Di", "year": "2003", "title": "Collectives of spins"},
}

SOURCES = {
    "this book": [],
    "Figure 1 of One (2000)": ["one2000"],
    "Figure 1 of Someone (2000)": [],
    "recomputed: Figure 2b of One and Two (2001), with a panel of One et al. (2002)": ["two2001", "many2002"],
    "the sweep of Four (2003)": ["first2003"],
    "the landscape of Four (2003), Collectives": ["second2003"],
    "the landscape of Four (2003), section 2": ["first2003"],
    "Nobody (1999)": [],
}


@pytest.mark.parametrize("text", SOURCES)
def test_a_source_in_words_names_the_works_of_the_bibliography(text):
    assert catalogue._named(text, WORKS, "first2003") == SOURCES[text]


def test_a_work_that_words_do_not_single_out_stands_for_all_that_they_fit():
    assert catalogue._named("Four (2003)", WORKS, "one2000") == ["first2003", "second2003"]


def test_a_figure_after_an_unknown_work_is_a_problem_and_one_of_this_book_is_none():
    figures = [
        {"id": "probe-line", "source": "Nobody (1999)", "source_keys": []},
        {"id": "probe-own", "source": "this book", "source_keys": []},
        {"id": "probe-known", "source": "One (2000)", "source_keys": ["one2000"]},
    ]
    (problem,) = catalogue.unresolved(figures)
    assert problem.startswith("figure probe-line: its source 'Nobody (1999)' names no work of references.bib")


@pytest.mark.parametrize("name", notebooks.names(REPOSITORY))
def test_every_source_of_a_figure_leads_to_a_work(name):
    text = (REPOSITORY / "notebooks" / f"{name}.md").read_text()
    written = re.findall(r"^    source=\(?((?:\s*r?f?\"[^\"]*\")+)", text, flags=re.MULTILINE)
    assert len(written) == text.count("figures.publish(")
    sources = ["".join(re.findall(r'"([^"]*)"', one)) for one in written]
    own = notebooks.load(REPOSITORY, name).source
    works = project.references(REPOSITORY)
    assert [one for one in sources if one != "this book" and not catalogue._named(one, works, own)] == []


def test_every_work_has_its_title_authors_and_year_and_most_an_address():
    works = catalogue.sources(REPOSITORY)
    assert set(works) == set(project.references(REPOSITORY))
    assert {key for key, work in works.items() if work["accompanied"]} == set(project.sources(REPOSITORY))
    assert works["poclopez2024dynamical"]["address"] == "https://arxiv.org/abs/2406.07247"
    assert works["stanley1968spherical"]["address"] == "https://doi.org/10.1103/PhysRev.176.718"
    assert all(work["address"] for work in works.values() if work["accompanied"])
