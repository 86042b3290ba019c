"""The table that the library carries is what the records hold."""

import numpy as np
import pandas as pd
import pytest

from experiments.comparison import experiment, summary, table
from spinbook import records


def test_the_library_carries_the_runs_of_the_records():
    carried = records.table("comparison")
    pd.testing.assert_frame_equal(carried, table.runs())
    assert carried.attrs["about"] == table.ABOUT


def test_means_of_the_table_are_those_of_the_summaries():
    carried = records.table("comparison")
    for longer in (False, True):
        record = experiment.recorded(longer=longer)
        for s in summary.summarize(record):
            chosen = (carried.task == s.task) & (carried.updates == record["recipe"]["num_updates"])
            accuracies = carried[chosen & (carried.module == s.module)].accuracy
            assert (len(accuracies), accuracies.isna().sum()) == (s.num_runs, s.failed)
            np.testing.assert_allclose(accuracies.mean(), s.accuracy, rtol=1e-14)


def test_another_name_is_refused_with_those_that_there_are():
    with pytest.raises(ValueError, match=r"comparison.*got 'comparisons'"):
        records.table("comparisons")
    assert "comparison" in records.names()
