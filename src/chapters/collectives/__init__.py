"""The chapter that gives the overview: the map of the lessons."""
