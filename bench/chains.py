r"""Benchmark of chains against the same requests asked flat, in turn: cases per second, and prefix tokens.

    .venv/bin/python bench/chains.py [rounds] [cases] [override ...]
    .venv/bin/python bench/chains.py 1 96 model=[tiny] model.tiny.max_num_seqs=16 \
        +model.tiny.max_tokens.twi_self=16 +model.tiny.max_tokens.step=32

Chains are those of `prompt=[twi_self]` on generated cases of MedThinkVQA: three requests a case, each with
the replies before it. Flat, the requests of the finished chains, text for text, are planned as three that
stand alone, and go through the same stream. The reader answers at once, unless an override names a model.

A rate counts from the moment when a tenth of the cases was finished to the last: engines and actors start
before it. There must be many more cases than the engine takes requests, or all of them end at once. Prompt
tokens are compared with the fewest possible, counted as `bench/work.py` counts them.
"""

import logging
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from work import fewest_tokens

SWEEP = ["+experiment=medthinkvqa", "prompt=[twi_self]", "selector=[uniform]", "tracker=none"]
READER = ["model=[constant]", "+model.constant.max_num_seqs=32"]
ROUNDS, CASES = 3, 720
WARM = 0.1  # of the cases
FREE = "letters"  # an answer format that binds no decoding, as in the stages before the last


@dataclass(slots=True)
class Pace:
    """Counters of finished cases, and when each came."""

    counters: Counter[str] = field(default_factory=Counter)
    finished_s: list[float] = field(default_factory=list)

    def tell(self, standing: Any) -> None:
        self.counters = Counter(standing.counters)
        self.finished_s.append(time.monotonic())

    @property
    def rate(self) -> float:
        """Cases per second after the first ones."""
        warm = int(WARM * len(self.finished_s))
        return (len(self.finished_s) - 1 - warm) / (self.finished_s[-1] - self.finished_s[warm])


def main() -> None:
    from tests.support.cases.example_cases import make_cases

    logging.disable(logging.WARNING)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    cases = int(sys.argv[2]) if len(sys.argv) > 2 else CASES
    with tempfile.TemporaryDirectory() as folder:
        make_cases(Path(folder) / "cases", cases, 1)
        places = [f"dataset.source={folder}/cases", f"store={folder}/store", f"outputs={folder}/outputs"]
        own = sys.argv[3:]
        reader = [] if any(word.startswith("model=") for word in own) else READER
        compare([*SWEEP, *reader, *places, *own], rounds, Path(folder) / "flat")


def compare(words: list[str], rounds: int, flat: Path) -> None:
    """Ask chains, then their requests flat, so many times; print each round and the median ratio."""
    from cardiolens.config.compose import read_spec
    from cardiolens.inference.plan.missing import missing
    from cardiolens.inference.plan.plan import plan
    from cardiolens.runtime.connect import ray_cluster
    from cardiolens.workflow.steps.prepare_studies import prepare_sweep

    spec = read_spec(words)
    ratios = []
    with ray_cluster(spec.cluster):
        prepare_sweep(spec)
        planned = plan(spec)
        (model,) = planned.spec.model
        completions = planned.store.completions(planned.identities[model.name].model_key)
        for number in range(rounds):
            shutil.rmtree(completions, ignore_errors=True)
            chained = _asked(planned, missing(planned.run.requests(model.name), completions, 1))
            _write_flat(planned, completions, flat)
            shutil.rmtree(completions)
            apart = missing(flat, completions, 1)
            flatly = _asked(planned, apart)
            ratios.append(chained.rate / flatly.rate)
            print(
                f"round {number + 1}: {chained.counters['ok']} chains {chained.rate:.1f}/s, as "
                f"{flatly.counters['ok']} requests {flatly.rate:.1f}/s, ratio {ratios[-1]:.2f}",
                flush=True,
            )
        if chained.counters["prompt_tokens"]:
            fewest, block = fewest_tokens(planned, apart)
            for name, pace in (("chains", chained), ("flat", flatly)):
                asked = pace.counters["prompt_tokens"]
                computed = asked - pace.counters["cached_tokens"]
                print(
                    f"{name}: {asked:,} prompt tokens asked, {fewest:,} the fewest in blocks of {block}, "
                    f"{computed:,} computed: {computed / fewest:.3f} x the fewest"
                )
    print(f"median ratio {statistics.median(ratios):.2f} of {rounds} rounds")


def _asked(planned: Any, left: Any) -> Pace:
    """Stream what is missing of the sweep's one model."""
    from cardiolens.inference.placement.footprint import nodes_of_ray
    from cardiolens.inference.plan.candidates import place_sweep
    from cardiolens.inference.stream.execution import execute

    (model,) = planned.spec.model
    of_model, pace = {model.name: left}, Pace()
    placement = place_sweep(planned, of_model, nodes_of_ray(planned.spec.cluster))
    execute(planned, placement, of_model, [lambda *_: pace.tell])
    return pace


def _write_flat(planned: Any, completions: Path, flat: Path) -> None:
    """Plan the requests of finished chains as requests that stand alone."""
    from cardiolens.inference.plan.request import table_of
    from cardiolens.storage import schemas, tables

    shutil.rmtree(flat, ignore_errors=True)
    (model,) = planned.spec.model
    for part in tables.parts(planned.run.requests(model.name)):
        requests = list(_flat(part, completions))
        tables.write_part(flat, table_of(requests), schemas.REQUESTS, part.name)


def _flat(part: Path, completions: Path) -> Iterator[Any]:
    """The requests of the chains of one part, those of a case together."""
    from bench.plan_rows import read_requests
    from cardiolens.protocol.dialogue.chain_tables import read_part_chains, walk
    from cardiolens.storage import schemas, tables

    chains = read_part_chains(part)
    steps: dict[str, list[Any]] = {chain: [] for chain in chains}
    for step in walk(chains, completions):
        assert step.completion is not None, "a chain has no end"
        steps[step.chain].append(step)
    for request in read_requests(part, range(tables.read_part(part, schemas.REQUESTS).num_rows)):
        for step in steps[request.request_key]:
            last = step.stage == chains[request.request_key].most_stages - 1
            yield replace(
                request,
                request_key=step.request_key,
                prompt=step.request.prompt,
                max_tokens=step.request.max_tokens,
                stage=0,
                answer_format=request.answer_format if last else FREE,
            )


if __name__ == "__main__":
    main()
