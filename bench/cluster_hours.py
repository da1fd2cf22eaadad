"""Hours of 24 models on a cluster, beside the fewest that its GPUs allow, by the estimate that a plan prints.

    python -m bench.cluster_hours [nodes] [GPUs per node] [GiB]

The first 24 open models of the catalogue answer 32 arms over 670 patients (13,494 questions per arm, 16
frames each). The fewest hours: all GPUs busy all the time, each model loaded once on its smallest footprint.
Rates are the declared ones. How evenly the replicas of one model end: bench/few_studies.py.
"""

import sys
from dataclasses import replace

from cardiolens.inference.placement.footprint import Node, footprints, load_seconds, work_seconds
from cardiolens.inference.placement.placement import place
from jobs.show_catalogue import candidates, catalogue

MODELS, ARMS, PATIENTS = 24, 32, 670


def main() -> None:
    count, gpus, gib = (int(word) for word in (sys.argv[1:] + ["4", "8", "80"][len(sys.argv) - 1 :]))
    nodes = tuple(Node(f"node-{number}", gpus, float(gib)) for number in range(count))
    asked = [
        replace(
            model,
            studies=PATIENTS,
            prompt_tokens=ARMS * model.prompt_tokens,
            output_tokens=ARMS * model.output_tokens,
        )
        for model in candidates(catalogue())[:MODELS]
    ]
    placement = place(nodes, asked)
    fewest = sum(
        work_seconds(model) + load_seconds(model) * footprints(model, nodes)[0].gpus for model in asked
    ) / (count * gpus)
    seconds = placement.seconds
    for one in placement.deployments:
        print(f"{one.model}: {one.replicas} x {one.gpus_per_replica:g} GPUs, {one.seconds / 3600:.1f} h")
    print(f"{seconds / 3600:.1f} h in all, {seconds / fewest:.4f} of the fewest; {len(asked)} models")


if __name__ == "__main__":
    main()
