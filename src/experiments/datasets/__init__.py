"""Data sets that are not shipped: where their files are, whether they are whole, and small samples that are shipped.

files       finding a file, and comparing it with its checksum
mnist       70,000 images of handwritten digits
moby_dick   a novel as a row of characters

Nothing is downloaded unasked. ``load`` of both takes a path, or the environment variable ``SPINBOOK_DATA``, a folder in
which the files lie; ``sample`` gives a part that is committed here, enough for tests.
"""

from __future__ import annotations

__all__: list[str] = []
