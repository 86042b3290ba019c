"""The map of the lessons has every lesson once, in the order of the book, and leads to each."""

import re
from pathlib import Path

import pytest

from chapters.collectives import figures as plot
from companion import pages as pages_of_the_book

ROOT = Path(__file__).resolve().parents[2]


def test_the_road_has_every_lesson_once_in_the_order_of_the_book_and_builds_on_what_comes_before():
    pages = [stop.page for stop in plot.ROAD]
    contents = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    assert pages == re.findall(r"^ {6}- file: notebooks/(\S+)$", contents, flags=re.MULTILINE)
    for place, stop in enumerate(plot.ROAD):
        assert set(stop.after) <= set(pages[:place])
        assert stop.minutes == pages_of_the_book.load(ROOT, stop.page).minutes
    assert len({stop.place for stop in plot.ROAD}) == len(plot.ROAD)


@pytest.mark.parametrize("folder", ["", "notebooks/"])
def test_the_road_links_every_lesson_in_the_drawing_and_in_the_list_and_runs_no_script(folder):
    markup = plot.roadmap(folder=folder)
    links = re.findall(r'href="([^"]+)"', markup)
    wanted = [f"{folder}{stop.page}.html" for stop in plot.ROAD]
    assert links == [*wanted, *wanted]
    assert "<script" not in markup
    assert markup.count('class="line') == sum(max(1, len(stop.after)) for stop in plot.ROAD[1:])
    for stop in plot.ROAD:
        assert f"{stop.page}, {stop.minutes} min" in markup
