"""What the book declares before anything runs: claims, pages, sources and names of the library, and how it is judged.

The text of claims, items and notebooks is read here, with every rule that one file can break; the code of the library
is read and never imported. This room imports no other room.
"""

from __future__ import annotations
