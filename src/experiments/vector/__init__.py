"""Compares mean-field theories of vector spins with sampled spins, and reads the records of it."""
