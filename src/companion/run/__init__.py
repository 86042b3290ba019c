"""Runs the pages: their keys, their kernels, papermill, the processes around them, and the build of the book."""
