"""The chapter on kinetic Ising models: the random numbers of its source."""
