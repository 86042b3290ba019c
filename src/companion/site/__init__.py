"""Makes the site of finished runs: pages, records for programs, the edition on paper, and the folder for an archive.

Every step reads plain files that the step before it wrote, and nothing is computed. It imports the rooms of what is
declared and of what has run.
"""

from __future__ import annotations
