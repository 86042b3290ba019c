"""Vector spins on spheres, all updated at once, with couplings of any symmetry."""
