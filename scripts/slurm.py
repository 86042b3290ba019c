"""A sweep on a Slurm cluster: one job for each worker, started by dask-jobqueue. See README.md beside it.

Run it on a node that can submit jobs, inside tmux or in a job of its own; it lives as long as the sweep.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Each worker computes one task at a time; libraries that take all cores for themselves would slow their neighbours.
SINGLE_THREADED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def parser() -> argparse.ArgumentParser:
    """The arguments of the command line."""
    result = argparse.ArgumentParser(description=__doc__)
    result.add_argument("--out", type=Path, required=True, help="a folder that all nodes see under this path")
    result.add_argument("--workers", type=int, default=10, help="jobs of one core each")
    result.add_argument("--memory", default="2GB", help="of each job")
    result.add_argument("--walltime", default="01:00:00", help="of each job; a worker whose time is up is replaced")
    result.add_argument("--queue", help="the partition")
    result.add_argument("--account", help="who pays")
    result.add_argument("--directive", action="append", default=[], help="a line for #SBATCH; may be given again")
    result.add_argument("--time-limit", type=float, metavar="SECONDS", help="a task that takes longer has failed")
    result.add_argument("--quick", action="store_true", help="few values and few steps, to try it")
    result.add_argument("--print-job", action="store_true", help="print the job of one worker and submit nothing")
    return result


def cluster(options: argparse.Namespace) -> Any:
    """A cluster without workers."""
    from dask_jobqueue import SLURMCluster

    return SLURMCluster(
        cores=1,
        processes=1,
        memory=options.memory,
        walltime=options.walltime,
        queue=options.queue,
        account=options.account,
        job_extra_directives=options.directive,
        job_script_prologue=[f"export {name}=1" for name in SINGLE_THREADED],
        scheduler_options={"dashboard_address": ":0"},
    )


def compute(options: argparse.Namespace, executor: Any) -> None:
    """Figure 3a of the paper, with the largest exponent, to ``diagram.nc``; put a sweep of your own in its place."""
    import numpy as np

    from spinbook.self_attention import bifurcation, paper_network

    size = {"steps": 200, "transient": 400} if options.quick else {}
    betas, out = np.linspace(0.0, 3.0, 41 if options.quick else 4001), options.out.absolute()
    kept = {"folder": out, "executor": executor, "time_limit": options.time_limit}
    bifurcation(paper_network(), betas, num_exponents=1, **size, **kept).to_netcdf(out / "diagram.nc", engine="scipy")


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the workers, run the sweep, end the workers; returns the exit status."""
    options = parser().parse_args(arguments)
    with cluster(options) as jobs:
        if options.print_job:
            print(jobs.job_script())
            return 0
        # A job that ends is followed by another one, for as long as there are tasks.
        jobs.adapt(minimum_jobs=options.workers, maximum_jobs=options.workers)
        with jobs.get_client() as client:
            compute(options, client.get_executor())
    return 0


if __name__ == "__main__":
    sys.exit(main())
