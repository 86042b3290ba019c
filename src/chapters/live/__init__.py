"""The live models of the lessons: for each, ``markup`` for where scripts run and ``still`` for where they do not."""
