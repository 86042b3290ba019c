"""Pages are shared out over processes, in order, and the processes end with the one that started them."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from companion.running import environment, workers
from toybook import wait_until

PROGRAM = """
import os, time
from companion.running import workers
if __name__ == "__main__":
    with workers.shared(1000) as each:
        print(*set(each(os.path.exists, ["."] * 8)), flush=True)
        time.sleep(60)
"""


@pytest.fixture(autouse=True)
def two_processors(monkeypatch):
    monkeypatch.setattr(environment, "processors", lambda: [0, 1])


def test_results_have_the_order_of_the_items_and_few_pages_start_no_process():
    with workers.shared(workers.FEW) as each:
        assert each is workers.alone
        assert each(str, [3, 1, 2]) == ["3", "1", "2"]
    with workers.shared(workers.FEW + 1) as each:
        assert each(str, [3, 1, 2]) == ["3", "1", "2"]
        with pytest.raises(ValueError, match="invalid literal"):
            each(int, ["1", "one"])


def test_processes_end_when_the_build_is_killed(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.replace("if __name__", "workers.environment.processors = lambda: [0, 1]\nif __name__"))
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, env=environ) as parent:
        assert parent.stdout.readline().split() == [b"True"]
        children = psutil.Process(parent.pid).children(recursive=True)
        assert len(children) >= 2
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in children))
