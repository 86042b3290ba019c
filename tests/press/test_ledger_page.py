"""The page of all claims: it shows the rivals, filters by what a row is, and stays light with 250 of them."""

import re

import pytest
from bs4 import BeautifulSoup
from jinja2 import UndefinedError
from markupsafe import Markup
from toybook import STATIC, page_of

from companion import claims
from companion.running import ledger
from companion.site import directives
from companion.site.markup import fill, quoted

HEAVIEST = 500_000
"""Most bytes of the table of 250 claims."""
CHAPTERS, KINDS = ("spins", "walks"), ("number", "statement")


def rows(count):
    made = []
    for number in range(count):
        chapter, kind = CHAPTERS[number % 2], KINDS[number // 2 % 2]
        target = {"published": 1.0, "reading_error": 0.01} if kind == "number" else {}
        claim = claims.Claim(
            id=f"{chapter}.claim-{number}",
            says="A sentence of the source in our words, as long as most of them are, with a number and a case. " * 2,
            source={"key": "somebody2000", "where": "section 2, after the third equation"},
            kind=kind,
            rival="the same without the factor of two that one would like to forget",
            verdict="reproduced",
            expects=None if target else {"above": 0.5, "why": "A threshold of ours, with the reason why it is one."},
            **target,
        )
        measurement = claims.Measurement(1.0 + number / 1e5, 1e-3, (0.25, 0.01))
        entry = ledger._entry(claim, measurement, claims.judge(claim, measurement))
        made.append(fill("ledger.row", entry | {"page": f"audits/{chapter}"}, to_root="../", texts={}, cited=str))
    return "".join(made)


def test_a_row_says_what_its_rival_is_and_how_far_off():
    row = BeautifulSoup(rows(1), "html.parser").select_one("tr")
    cell = row.select("td")[5]
    # 0.75 off, against 0.01 + 3 sqrt(0.001^2 + 0.01^2).
    said = "the same without the factor of two that one would like to forget rival 0.25 ± 0.01, 18.7 bounds off"
    assert cell.get_text(" ") == said
    assert (row["data-chapter"], row["data-kind"], row["data-verdict"]) == ("spins", "number", "reproduced")
    assert len(row.select("td")) == len(directives.ClaimsLedger.HEADINGS)


def test_on_a_telephone_every_value_of_a_row_has_the_name_of_its_column():
    style = (STATIC / "companion.css").read_text()
    named = re.findall(r"\.book-ledger td:nth-child\((\d+)\)::before \{ content: \"(\w+)\"; \}", style)
    headings = directives.ClaimsLedger.HEADINGS
    assert {int(column): name for column, name in named} == dict(enumerate(headings[1:], start=2))


def test_250_claims_stay_light():
    assert len(rows(250).encode()) < HEAVIEST


def test_250_claims_are_filtered_by_chapter_kind_and_words_at_once_and_sorted_with_empty_cells_last(tmp_path, ask):
    head = "".join(f"<th>{heading}</th>" for heading in directives.ClaimsLedger.HEADINGS)
    table = f"<thead><tr>{head}</tr></thead><tbody>{rows(250)}</tbody>"
    table = f'<div class="book-table"><table class="book-sortable book-filterable">{table}</table></div>'
    page = page_of(tmp_path / "page.html", table, "companion.js")
    script = """
      const shown = () => [...document.querySelectorAll("tbody tr")].filter((row) => !row.hidden).length;
      const set = (name, value) => {
        document.querySelector(`.book-filter [name=${name}]`).value = value;
        document.querySelector(".book-filter").dispatchEvent(new Event("input"));
        return shown();
      };
      const published = () => [...document.querySelectorAll("tbody tr")].map((row) => row.cells[3].dataset.value);
      const button = [...document.querySelectorAll("th button")].find((one) => one.textContent === "Published");
      const seen = [shown(), set("chapter", "walks"), set("kind", "number"), set("q", "claim-249")];
      seen.push(document.querySelector("output").textContent);
      const sorted = [0, 1].map(() => { button.click(); return published().indexOf(""); });
      const answer = [seen, sorted];
    """
    seen, sorted_ = ask(page, script)
    numbers = 126
    assert seen == [250, 125, 63, 1, "1 of 250 shown"]
    assert sorted_ == [numbers, numbers], "rows without a published number stand last, up and down"


def test_formulas_in_the_words_of_a_source_are_letters():
    assert quoted({"quote": r"the partition function $Z_1$ for $\nu \geq 0$"}) == (
        "“the partition function Z_1 for ν≥0”"
    )


def test_a_template_escapes_words_asks_for_every_fact_and_leaves_no_space_between_tags():
    entry = {"id": "walks.a<b", "page": "walks", "measured": None}
    assert fill("ledger.proof", entry=entry, to_root="../") == '<a href="../notebooks/walks.html">walks.a&lt;b</a>'
    with pytest.raises(UndefinedError, match="'to_root' is undefined"):
        fill("ledger.proof", entry=entry)
    words = {"Agrees": "One.", "Differs": Markup("x<sup>2</sup>")}
    assert fill("parts.facts", words) == "<dt>Agrees</dt><dd>One.</dd><dt>Differs</dt><dd>x<sup>2</sup></dd>"
