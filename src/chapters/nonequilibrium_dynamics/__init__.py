"""The chapter on nonequilibrium dynamics: its figures, and numbers that the program of its source gave."""
