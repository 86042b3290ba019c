"""The press: runs the pages of the book, judges what they measure against its claims, and builds the site.

``cli`` has the commands. ``pages``, ``manuscript`` and ``project`` read what people write: notebooks, texts and YAML,
and ``_config.yml``. ``claims`` reads the claims, records measurements and judges them; ``run`` runs the pages;
``figures`` saves their figures; ``site`` makes the HTML; ``check`` has the rules that need no run. Importing this
package loads none of them.
"""

from __future__ import annotations
