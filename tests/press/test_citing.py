"""What programs that cite, index and archive find in a finished site, and the folder for an archive."""

import hashlib
import json
import xml.etree.ElementTree as ElementTree
import zipfile

import pytest
from bs4 import BeautifulSoup

from companion import project
from companion.declaring import notebooks
from companion.plain import plain, typeset
from companion.site import citing, deposit
from toybook import committed, git


@pytest.fixture(scope="module")
def site(two_pages):
    book, _, _ = two_pages
    return book.path("_build/html"), project.identity(book.root), notebooks.pages(book.root)


def facts(page):
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    named = {tag.get("name") or tag.get("property"): tag["content"] for tag in soup.select("meta[content]")}
    return named, soup


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (r"Couplings of variance $g^2/N$ at $\beta=1$", "Couplings of variance g^2/N at β=1"),
        (r"The ratio $I_{\nu+1}(x)/I_\nu(x)$, 5 % off", "The ratio I_ν+1(x)/I_ν(x), 5 % off"),
        (r"from $\mathbf{S}=\mathbf{X}$, as {numref}`walks-spread`", "from S=X, as walks-spread"),
        ("see {doc}`the *lesson* <../probe>` and ``x_i``", "see the lesson and x_i"),
        ("snake_case and 2 * 3", "snake_case and 2 * 3"),
    ],
)
def test_captions_become_plain_text(text, said):
    assert plain(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("of size 1/sqrt(N D), beta^2 and beta <= 2", "of size 1/√(N D), β<sup>2</sup> and β ≤ 2"),
        ("(pi/beta)^(N/2) det(V)^(-1/2)", "(π/β)<sup>N/2</sup> det(V)<sup>−1/2</sup>"),
        ("D^((D-1)/2)", "D<sup>(D−1)/2</sup>"),
        ("-sum_mu K_mu(t_mu) - |v|^2", "−∑<sub>μ</sub> K<sub>μ</sub>(t<sub>μ</sub>) − |v|<sup>2</sup>"),
        ("sum_i W_imu v_i", "∑<sub>i</sub> W<sub>iμ</sub> v<sub>i</sub>"),
        ("[V^-1 H]_ii and dJ_mn/dh_i", "[V<sup>−1</sup> H]<sub>ii</sub> and dJ<sub>mn</sub>/dh<sub>i</sub>"),
        ("good to 1e-10, below 2.5e-3", "good to 10<sup>−10</sup>, below 2.5 × 10<sup>−3</sup>"),
        ("s_j and phi(h_(j,t))", "s<sub>j</sub> and φ(h<sub>j,t</sub>)"),
        # Words, names in code and ids of claims stay.
        ("weight_sym_sites, one-way, t-1", "weight_sym_sites, one-way, t-1"),
        ("J & free-energy.next-beta", "J &amp; free-energy.next-beta"),
        ("the alphabet of a Gaussian <b>", "the alphabet of a Gaussian &lt;b&gt;"),
    ],
)  # fmt: skip
def test_formulas_in_the_words_of_a_claim_are_set(text, said):
    assert typeset(text) == said


def test_every_page_says_what_it_is_in_the_words_of_each_kind_of_program(site):
    html, who, pages = site
    for name in pages:
        named, soup = facts(html / f"{name}.html")
        title = " ".join(soup.h1.get_text().replace("#", "").split())
        address = who.site if name == "index" else f"{who.site}{name}.html"
        assert named["description"], name
        assert named["description"] == named["og:description"]
        assert named["citation_title"] == (who.title if name == "index" else title)
        assert named["citation_public_url"] == named["og:url"] == address
        assert named["og:site_name"] == who.title


def test_a_chapter_is_described_by_its_summary_and_shown_by_its_figure(site):
    html, who, _ = site
    named, _ = facts(html / "notebooks/probe.html")
    assert named["description"] == "Two walkers."
    assert named["og:image"] == f"{who.site}figures/probe-line/probe-line.png"
    assert (html / "figures/probe-line/probe-line.png").is_file()
    assert named["og:type"] == "article"


def test_the_map_of_the_site_and_the_index_for_language_models_hold_every_page_once(site):
    html, who, pages = site
    space = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    found = [place.text for place in ElementTree.parse(html / "sitemap.xml").iter(f"{space}loc")]
    assert found == [who.site if name == "index" else f"{who.site}{name}.html" for name in pages]
    text = (html / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith(f"# {who.title}\n\n> ")
    assert [text.count(f"({who.site}{name}.html)") for name in pages if name != "index"] == [1] * (len(pages) - 1)


def test_a_page_that_does_not_exist_leads_to_whole_addresses(site):
    html, who, _ = site
    soup = BeautifulSoup((html / "404.html").read_text(encoding="utf-8"), "html.parser")
    assert all(link["href"].startswith(who.site) for link in soup.select("a[href]"))
    assert f"{who.site}notebooks/probe.html" in [link["href"] for link in soup.select("a[href]")]
    assert soup.select("script, img, link") == []


def test_an_identifier_is_said_wherever_programs_look_for_one_as_soon_as_there_is_one(pair):
    pair.edit("_config.yml", "library: walks", "library: walks\n  doi: 10.1234/walks")
    who, html = project.identity(pair.root), pair.path("_build/html")
    assert who.doi == "10.1234/walks"
    # As it was rendered, with the facts of before taken away.
    for name in notebooks.pages(pair.root):
        assert "10.1234" not in (html / f"{name}.html").read_text(encoding="utf-8")
    citing.write(pair.root, html)
    assert 'content="10.1234/walks"' in (html / "notebooks/probe.html").read_text(encoding="utf-8")
    assert "doi = {10.1234/walks}" in who.bibtex("key", "A title", "https://example.org")
    assert who.csl("key", "A title", "https://example.org")["DOI"] == "10.1234/walks"


def test_a_deposit_is_whole_and_can_be_checked(pair, tmp_path):
    with pytest.raises(ValueError, match=r"^the site: expected one that was made from the commit that stands here"):
        deposit.write(pair.root)
    pair.path("_build").rename(tmp_path / "_build")
    (pair.root / ".gitignore").write_text("_build/\n", encoding="utf-8")
    committed(pair.root)
    (tmp_path / "_build").rename(pair.path("_build"))
    commit = git(pair.root, "rev-parse", "HEAD")
    index = pair.path("_build/html/book.json")
    facts = json.loads(index.read_text(encoding="utf-8")) | {"commit": commit, "dirty": False}
    index.write_text(json.dumps(facts), encoding="utf-8")
    files = {path.name: path for path in deposit.write(pair.root)}
    with zipfile.ZipFile(files["walks-site.zip"]) as archive:
        assert "notebooks/probe.html" in archive.namelist()
    with zipfile.ZipFile(files["walks-sources.zip"]) as archive:
        assert "notebooks/probe.md" in archive.namelist()
    with zipfile.ZipFile(files["walks-notebooks.zip"]) as archive:
        assert archive.namelist() == sorted(f"{page}.ipynb" for page in notebooks.names(pair.root))
        for name in archive.namelist():
            assert "This notebook uses the walks" in archive.read(name).decode(), "it carries the library"
    metadata = json.loads(files["metadata.json"].read_text(encoding="utf-8"))["metadata"]
    assert metadata["doi"] == ""
    assert commit in metadata["notes"]
    for line in files["SHA256SUMS"].read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        assert digest == hashlib.sha256(files[name].read_bytes()).hexdigest()
    # What a build leaves whose site has a problem, such as a page that cannot be packed.
    pair.path("_build/site.json").unlink()
    with pytest.raises(ValueError, match=r"^the site: expected a whole one in _build/html, got none"):
        deposit.write(pair.root)
