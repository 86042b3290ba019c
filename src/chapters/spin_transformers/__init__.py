"""The chapter on spin transformers: the runs and the printed arrays of its source, and the infinite system."""
