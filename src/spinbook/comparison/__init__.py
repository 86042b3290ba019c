"""Modules of spins and transformer blocks on the same tasks, under the same conditions."""
