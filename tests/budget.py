"""What the tests cost: a table at the end of a run, and a limit for a single fast test. It tests nothing itself.

The cost is processor time, of the test and of the processes that it started and waited for: unlike the time on the
clock it stays about the same on a busy machine, and it is what two cores share. The limit is a guard against a test
that forgot the mark `slow`, not a benchmark: processors differ, so it is several times what the costliest test takes.
"""

import resource
from collections import Counter
from collections.abc import Generator

import pytest

SUITE_SECONDS = 5 * 60 * 2
"""Five minutes on two cores, for all fast tests together."""

LONG = 4
"""How many times the limit a test with the mark `long` may take."""

SHOWN = 10
WORTH_TELLING = 60.0
"""Seconds from which on a run without a limit shows its account."""

_COST = "cpu_seconds"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("budget")
    group.addoption(
        "--longest-fast-test",
        type=float,
        metavar="SECONDS",
        help=f"fail if a fast test takes more seconds of processor time ({LONG} times as many with the mark long)",
    )


def pytest_configure(config: pytest.Config) -> None:
    limit = config.getoption("--longest-fast-test")
    if limit is not None and not limit > 0:
        raise pytest.UsageError(f"--longest-fast-test: expected a positive number of seconds, got {limit}")
    config.pluginmanager.register(_Measure())
    # Workers measure; the process that reports adds up.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Account(limit))


SLOW_EXAMPLES = {f"experiments.entropy_production.{name}" for name in ("learn_recall", "sculpt")}
"""Examples in docstrings that train, and compile for ten seconds of processor time and more."""


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.name in SLOW_EXAMPLES:
        item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def _cpu_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class _Measure:
    """Notes in every report what the phase (set-up, call, tear-down) cost."""

    def __init__(self) -> None:
        self.before = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self.before = _cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = _cpu_seconds()
        setattr(report, _COST, now - self.before)
        self.before = now
        return report


class _Account:
    """Adds the reports up, shows the sums, and fails the run for a fast test over the limit."""

    def __init__(self, limit: float | None) -> None:
        self.limit = limit
        self.cost: Counter[str] = Counter()
        self.slow: set[str] = set()
        self.long: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.cost[report.nodeid] += getattr(report, _COST, 0.0)
        if "slow" in report.keywords:
            self.slow.add(report.nodeid)
        if "long" in report.keywords:
            self.long.add(report.nodeid)

    @property
    def over(self) -> list[str]:
        """Fast tests that cost more than they may, the costliest first."""
        if self.limit is None:
            return []
        allowed = {test: self.limit * (LONG if test in self.long else 1) for test in self.cost}
        return [test for test, cost in self.cost.most_common() if cost > allowed[test] and test not in self.slow]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.over and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        fast = sum(cost for test, cost in self.cost.items() if test not in self.slow)
        if self.limit is None and sum(self.cost.values()) < WORTH_TELLING:
            return
        files: Counter[str] = Counter()
        for test, cost in self.cost.items():
            files[test.partition("::")[0]] += cost
        write = terminalreporter.write_line
        terminalreporter.section("processor seconds")
        write(f"{fast:8.1f}  all fast tests, of {SUITE_SECONDS}; the slow ones {sum(self.cost.values()) - fast:.1f}")
        for rows in (files, self.cost):
            for name, cost in rows.most_common(SHOWN):
                write(f"{cost:8.1f}  {name}")
        for test in self.over:
            write(f"FAILED, over the limit for a test without the mark slow: {self.cost[test]:.1f}  {test}")
