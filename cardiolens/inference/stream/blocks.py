"""Blocks of the stream: the studies that one task reads, and that one call of a replica answers.

A task of Ray Data costs some tens of milliseconds, more than a study with one request does.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_REQUESTS = 64  # of a block of several studies, at most
_PER_REPLICA = 8  # blocks at least, as far as there are studies: a block cannot move to an idle replica
BLOCK_BYTES = 32 << 20  # of frames, above which what a task has read is passed on as several blocks


def blocks(work: pa.Table, replicas: int, studies_in_flight: int) -> list[pa.Table]:
    """Divide WORK into blocks of studies, in order.

    A study with many requests is a block of its own; a block has at most half of the studies that may be in
    flight at a replica, so that the next block is there when one ends.
    """
    sizes = np.asarray(pc.list_value_length(work["rows"]), np.int64)
    most = min(_REQUESTS, int(sizes.sum()) // (_PER_REPLICA * replicas))
    most_studies = max(1, studies_in_flight // 2)
    first, requests = 0, 0
    divided = []
    for study, size in enumerate(sizes.tolist()):
        if study > first and (requests + size > most or study - first == most_studies):
            divided.append(work.slice(first, study - first))
            first, requests = study, 0
        requests += size
    return [*divided, work.slice(first)]
