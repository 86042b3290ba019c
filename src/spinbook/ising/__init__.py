"""Kinetic Ising models: binary spins, all updated at once, with couplings of any symmetry."""
