"""The account of what tests cost: it measures work and not waiting, and refuses a fast test that works too long."""

import pytest

pytest_plugins = ["pytester"]

TESTS = """
    import time
    import pytest

    def work(seconds):
        until = time.process_time() + seconds
        while time.process_time() < until:
            pass

    def test_waits():
        time.sleep(0.3)

    @pytest.mark.slow
    def test_slow():
        work(0.3)

    @pytest.mark.long
    def test_long():
        work(0.3)

    def test_works():
        work({seconds})
"""


@pytest.fixture
def run(pytester):
    """The exit status and the lines of a run of four tests, of which the last works for so many seconds."""
    pytester.makeini("[pytest]\nmarkers =\n    slow: s\n    long: l")

    def run(seconds, *arguments):
        pytester.makepyfile(TESTS.format(seconds=seconds))
        result = pytester.runpytest_inprocess("-p", "tests.budget", "-p", "no:xdist", *arguments)
        result.assert_outcomes(passed=4)
        return result.ret, [line.split() for line in result.outlines]

    return run


def test_only_a_fast_test_that_works_is_over_the_limit(run):
    status, lines = run(0.3, "--longest-fast-test=0.2")
    assert status == pytest.ExitCode.TESTS_FAILED
    failed = [line[-1].partition("::")[2] for line in lines if line[:1] == ["FAILED,"]]
    # A long test may take several times as much, and waiting costs nothing.
    assert failed == ["test_works"]


def test_work_is_counted_waiting_is_not_and_long_tests_come_first(run):
    status, lines = run(0.0, "--longest-fast-test=0.2", "-v")
    assert status == pytest.ExitCode.OK
    first = next(line for line in lines if line[1:4] == ["all", "fast", "tests,"])
    # The long test alone; the slow one is not among the fast.
    assert 0.3 <= float(first[0]) < 0.6
    order = [line[0].partition("::")[2] for line in lines if len(line) > 1 and line[1] == "PASSED"]
    assert order[0] == "test_long", "long tests are begun first"


@pytest.mark.parametrize("limit", ["0", "-1", "nan"])
def test_a_limit_that_is_not_positive_is_refused(pytester, limit):
    result = pytester.runpytest_inprocess("-p", "tests.budget", "-p", "no:xdist", f"--longest-fast-test={limit}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--longest-fast-test: expected a positive number of seconds, got *"])
