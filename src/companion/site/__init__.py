"""Makes the site: ``render`` runs Jupyter Book on the executed pages, and ``extension`` adds directives and roles.

``figures`` and ``ledger`` hold these, on the base classes of ``onpage``; ``reference`` writes the pages of the library,
``packed`` the notebooks that run alone.
"""
