"""The stream of one model in this process, without Ray: for few requests of a sweep with servers.

Ray takes some seconds to start, in which a server answers the questions of a try. Loader, replica and writer
are those of a cluster.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

import pyarrow as pa

from cardiolens.inference.plan.missing import Missing
from cardiolens.inference.plan.plan import Plan
from cardiolens.inference.stream.loader import StudyLoader
from cardiolens.inference.stream.replica import Replica

_MOST = 500  # requests; with more, the start of Ray no longer counts, and its readers keep up with any server


def need_no_cluster(plan: Plan, remaining: Mapping[str, Missing]) -> bool:
    """Return whether all missing requests are few and go to servers, or to readers without files beside them.

    Not if a cluster was named.
    """
    models = plan.spec.model
    answer_anywhere = [
        model.name for model in models if model.http or model.simulated or model.engine == "person"
    ]
    return (
        plan.spec.cluster.address is None
        and any(model.http for model in models)
        and all(not work.left or name in answer_anywhere for name, work in remaining.items())
        and sum(work.left for work in remaining.values()) <= _MOST
    )


def answers_here(
    make_replica: Callable[[], Replica], loader: StudyLoader, work: Sequence[pa.Table], in_flight: int
) -> Iterator[pa.Table]:
    """Yield PROGRESS rows of each block of work as it is finished, with `in_flight` blocks at once."""
    with asyncio.Runner() as runner:
        replica = make_replica()
        waiting = iter(work)
        running: set[asyncio.Task[pa.Table]] = set()
        try:
            while True:
                for block in islice(waiting, in_flight - len(running)):
                    task = runner.get_loop().create_task(_block(replica, loader, block))
                    task.add_done_callback(_noticed)
                    running.add(task)
                if not running:
                    return
                finished, running = runner.run(asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED))
                for task in finished:
                    yield task.result()
        finally:
            runner.run(replica.close())


def _noticed(task: "asyncio.Task[pa.Table]") -> None:
    """Retrieve the error of a block that ends after another one has ended the run."""
    if not task.cancelled():
        task.exception()


async def _block(replica: Replica, loader: StudyLoader, block: pa.Table) -> pa.Table:
    loaded = pa.concat_tables(await asyncio.to_thread(list, loader(block)))
    return pa.concat_tables([progress async for progress in replica(loaded)])
