"""The tables that the library carries are those that their modules make."""

import jax
import numpy as np
import pandas as pd
import pytest

from experiments.vector import phases, rows
from spinbook import records


def test_the_rows_of_attention_are_those_of_the_record():
    pd.testing.assert_frame_equal(records.table("attention-rows"), rows.rows(), check_dtype=False)


def test_the_phase_diagram_has_a_row_for_each_case():
    table = records.table("phase-diagram")
    expected = [(case.couplings, case.beta, case.field) for case in phases.cases()]
    assert list(table[["couplings", "beta", "x"]].itertuples(index=False, name=None)) == expected


@pytest.mark.slow
def test_a_system_of_the_phase_diagram_is_sampled_again():
    place = 30
    again, row = phases.measure(phases.cases()[place]), records.table("phase-diagram").iloc[place]
    assert again["g"] == pytest.approx(row.g, abs=1e-4)
    assert again["naive"] == pytest.approx(row.naive, abs=1e-3)
    assert again["order"] == pytest.approx(row.order, abs=0.01)


def test_as_many_rows_read_each_site_of_regular_couplings():
    J = phases.couplings(jax.random.key(0), 12, kind="regular", scale=3)
    np.testing.assert_allclose(J.sum(axis=0), 1)
    np.testing.assert_allclose(J.sum(axis=1), 1)
