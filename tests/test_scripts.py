"""The scripts for clusters, as far as they go without one."""

import importlib.util
import json
import sys
import types
from pathlib import Path

import pytest

from spinbook import self_attention

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"


def script(name):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["slurm", "kubernetes"])
def test_a_script_is_imported_and_explains_itself_without_any_cluster_library(name, capsys):
    before = set(sys.modules)
    with pytest.raises(SystemExit) as end:
        script(name).main(["--help"])
    assert end.value.code == 0
    assert "--workers" in capsys.readouterr().out
    assert not {"dask", "distributed", "dask_jobqueue", "dask_kubernetes"} & (set(sys.modules) - before)


class Cluster:
    """Takes the place of a cluster: notes what it is asked for."""

    def __init__(self, **options):
        self.options, self.adapted = options, None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def adapt(self, **limits):
        self.adapted = limits

    def get_client(self):
        return self

    def get_executor(self):
        return "the executor"


@pytest.fixture
def computed(monkeypatch):
    calls = []

    def bifurcation(network, betas, **options):
        calls.append((len(betas), options))
        return types.SimpleNamespace(to_netcdf=lambda path, engine: calls.append(path.name))

    monkeypatch.setattr(self_attention, "bifurcation", bifurcation)
    return calls


def test_slurm_jobs_take_one_core_and_the_sweep_their_executor(monkeypatch, computed, tmp_path):
    made = []

    def cluster(**options):
        made.append(Cluster(**options))
        return made[-1]

    monkeypatch.setitem(sys.modules, "dask_jobqueue", types.SimpleNamespace(SLURMCluster=cluster))
    arguments = ["--out", str(tmp_path), "--workers", "7", "--account", "me", "--time-limit", "60", "--quick"]
    assert script("slurm").main(arguments) == 0
    assert made[0].options["cores"] == made[0].options["processes"] == 1
    assert made[0].options["account"] == "me"
    assert "export OMP_NUM_THREADS=1" in made[0].options["job_script_prologue"]
    assert made[0].adapted == {"minimum_jobs": 7, "maximum_jobs": 7}
    (betas, options), file = computed
    assert (betas, options["folder"], options["executor"], options["time_limit"]) == (41, tmp_path, "the executor", 60)
    assert file == "diagram.nc"


def test_kubernetes_pods_take_one_core_and_see_the_folder_that_is_claimed(monkeypatch, computed, tmp_path, capsys):
    def make_cluster_spec(**options):
        containers = [{"name": "worker", "image": options["image"], "env": options["env"]}]
        return {"spec": {"worker": {"replicas": options["n_workers"], "spec": {"containers": containers}}}}

    made = []

    def cluster(**options):
        made.append(Cluster(**options))
        return made[-1]

    operator = types.SimpleNamespace(make_cluster_spec=make_cluster_spec, KubeCluster=cluster)
    monkeypatch.setitem(sys.modules, "dask_kubernetes", types.SimpleNamespace(operator=operator))
    monkeypatch.setitem(sys.modules, "dask_kubernetes.operator", operator)
    arguments = ["--out", str(tmp_path), "--image", "i", "--workers", "7", "--claim", "c"]
    assert script("kubernetes").main([*arguments, "--print-spec"]) == 0
    worker = json.loads(capsys.readouterr().out)["spec"]["worker"]
    assert worker["replicas"] == 7
    assert worker["spec"]["volumes"][0]["persistentVolumeClaim"] == {"claimName": "c"}
    assert worker["spec"]["containers"][0]["volumeMounts"][0]["mountPath"] == str(tmp_path)
    assert worker["spec"]["containers"][0]["env"]["OMP_NUM_THREADS"] == "1"
    assert computed == []
    assert script("kubernetes").main(arguments) == 0
    assert computed[0][0] == 4001
    assert computed[0][1]["executor"] == "the executor"
    assert made[0].options["custom_cluster_spec"]["spec"]["worker"] == worker


@pytest.mark.slow
def test_the_job_of_slurm_says_what_was_asked_for(capsys):
    pytest.importorskip("dask_jobqueue")
    assert script("slurm").main(["--out", "x", "--print-job", "--queue", "short", "--walltime", "00:10:00"]) == 0
    job = capsys.readouterr().out
    for line in ("#SBATCH -p short", "#SBATCH -t 00:10:00", "#SBATCH --cpus-per-task=1", "export OMP_NUM_THREADS=1"):
        assert line in job
