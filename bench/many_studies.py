"""Rehearsal of a stream of 100,000 small studies: 2,000 cases of MedThinkVQA, 50 times over.

    .venv/bin/python -m bench.many_studies [cases] [times]

The work of a real plan is repeated, so every study is read, rendered, passed on, answered by an instant
reader and written as any other. Prints the studies answered a second, and the driver's largest resident set.
"""

import resource
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from bench.small_studies import SWEEP
from cardiolens.config.compose import read_spec
from cardiolens.inference.placement.footprint import nodes_of_ray
from cardiolens.inference.plan.candidates import place_sweep
from cardiolens.inference.plan.missing import missing_of
from cardiolens.inference.plan.plan import plan
from cardiolens.inference.stream.pipeline import stream
from cardiolens.runtime.connect import be_quiet, ray_cluster
from cardiolens.workflow.steps.prepare_studies import prepare_sweep
from tests.support.cases.example_cases import make_cases


def main() -> None:
    cases, times = (int(word) for word in (sys.argv[1:] + ["2000", "50"][len(sys.argv) - 1 :])[:2])
    be_quiet()
    with tempfile.TemporaryDirectory() as folder:
        make_cases(Path(folder) / "cases", cases, 1)
        places = [f"dataset.source={folder}/cases", f"store={folder}/store", f"outputs={folder}/outputs"]
        spec = read_spec([*SWEEP, "budget=[1]", "tracker=none", *places])
        with ray_cluster(spec.cluster):
            prepare_sweep(spec)
            planned = plan(spec)
            (name,) = planned.identities
            left = missing_of(planned, name)
            left = replace(left, work=pa.concat_tables([left.work] * times), unique=left.unique * times)
            ((deployment,),) = place_sweep(planned, {name: left}, nodes_of_ray(spec.cluster)).waves
            began = time.monotonic()
            answered: Counter[str] = stream(planned, deployment, left, lambda _: None).counters
            seconds = time.monotonic() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{left.work.num_rows:,} studies, {answered['ok']:,} answered in {seconds:.0f} s: "
        f"{answered['ok'] / seconds:.0f} a second; driver {peak:.0f} MiB"
    )


if __name__ == "__main__":
    main()
