"""A sweep on Kubernetes: one pod for each worker, started by the operator of dask. See README.md beside it.

The operator has to be installed in the cluster once; the image has to hold this package with its extra ``cluster``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SINGLE_THREADED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def parser() -> argparse.ArgumentParser:
    """The arguments of the command line."""
    result = argparse.ArgumentParser(description=__doc__)
    result.add_argument("--out", type=Path, required=True, help="where results are kept; see --claim")
    result.add_argument("--image", required=True, help="an image with this package and its extra `cluster`")
    result.add_argument("--workers", type=int, default=10, help="pods of one core each")
    result.add_argument("--memory", default="2Gi", help="of each pod")
    result.add_argument("--name", default="spinbook-sweep", help="of the cluster")
    result.add_argument("--namespace", help="the one of the current context by default")
    result.add_argument(
        "--claim",
        help="a volume claim that many pods may write (ReadWriteMany), mounted at the path of --out; "
        "without it results are kept by this script when they arrive",
    )
    result.add_argument("--time-limit", type=float, metavar="SECONDS", help="a task that takes longer has failed")
    result.add_argument("--quick", action="store_true", help="few values and few steps, to try it")
    result.add_argument("--print-spec", action="store_true", help="print the specification and start nothing")
    return result


def specification(options: argparse.Namespace) -> dict[str, Any]:
    """What the operator is asked for."""
    from dask_kubernetes.operator import make_cluster_spec

    spec: dict[str, Any] = make_cluster_spec(
        name=options.name,
        image=options.image,
        n_workers=options.workers,
        resources={
            "requests": {"cpu": "1", "memory": options.memory},
            "limits": {"cpu": "1", "memory": options.memory},
        },
        env=dict.fromkeys(SINGLE_THREADED, "1"),
        worker_command=["dask", "worker", "--nthreads", "1"],
    )
    if options.claim:
        pod = spec["spec"]["worker"]["spec"]
        pod["volumes"] = [{"name": "out", "persistentVolumeClaim": {"claimName": options.claim}}]
        pod["containers"][0]["volumeMounts"] = [{"name": "out", "mountPath": str(options.out.absolute())}]
    return spec


def compute(options: argparse.Namespace, executor: Any) -> None:
    """Figure 3a of the paper, with the largest exponent, to ``diagram.nc``; put a sweep of your own in its place."""
    import numpy as np

    from spinbook.self_attention import bifurcation, paper_network

    size = {"steps": 200, "transient": 400} if options.quick else {}
    betas, out = np.linspace(0.0, 3.0, 41 if options.quick else 4001), options.out.absolute()
    kept = {"folder": out, "executor": executor, "time_limit": options.time_limit}
    bifurcation(paper_network(), betas, num_exponents=1, **size, **kept).to_netcdf(out / "diagram.nc", engine="scipy")


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the pods, run the sweep, end the pods; returns the exit status."""
    options = parser().parse_args(arguments)
    spec = specification(options)
    if options.print_spec:
        print(json.dumps(spec, indent=1))
        return 0
    from dask_kubernetes.operator import KubeCluster

    with (
        KubeCluster(custom_cluster_spec=spec, namespace=options.namespace) as pods,
        pods.get_client() as client,
    ):
        compute(options, client.get_executor())
    return 0


if __name__ == "__main__":
    sys.exit(main())
