"""No chapter is left without a result that was derived again."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_every_chapter_has_a_central_result_derived_again():
    chapters = {path.stem for path in (REPOSITORY / "notebooks").glob("*.md")}
    files = {path.stem.removeprefix("test_").replace("_", "-") for path in Path(__file__).parent.glob("test_*.py")}
    assert files - {"every-chapter"} == chapters
