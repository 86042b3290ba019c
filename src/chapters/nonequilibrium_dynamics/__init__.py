"""The chapter on nonequilibrium dynamics: numbers that the program of its source gave."""
