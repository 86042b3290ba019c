"""The chapter on attention dynamics: two drawings, and numbers that the authors store."""
