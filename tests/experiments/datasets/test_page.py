"""The page on data says of every file what the loaders hold it to."""

from pathlib import Path

from experiments import encoder
from experiments.datasets import files, mnist, moby_dick

PAGE = (Path(__file__).resolve().parents[3] / "book" / "data.md").read_text(encoding="utf-8")


def test_the_page_lists_every_file_with_its_length_and_checksum():
    for known in (*mnist.FILES, *encoder.FILES, moby_dick.FILE):
        assert f"| `{known.name}` | {known.num_bytes} | `{known.sha256}` |" in PAGE
    assert files.ENVIRONMENT in PAGE
