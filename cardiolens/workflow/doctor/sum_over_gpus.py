"""Sum over all GPUs once, as engines with tensor parallelism do at every layer: one process for each GPU.

A program of its own: spawned processes import it, which they cannot do with text that Python was given.
"""

import os
import socket
import sys
from collections.abc import Sequence


def main(words: Sequence[str]) -> None:
    """Sum over so many GPUs; with `gloo` as the second word in main memory, where there are none."""
    from torch.multiprocessing.spawn import spawn

    n_gpus, backend = int(words[0]), [*words[1:], "nccl"][0]
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    spawn(_sum, args=(n_gpus, backend), nprocs=n_gpus)  # type: ignore[no-untyped-call]


def _sum(rank: int, n_gpus: int, backend: str) -> None:
    import torch

    device = torch.device("cpu")
    if backend == "nccl":
        device = torch.device("cuda", rank)
        torch.cuda.set_device(device)
    torch.distributed.init_process_group(backend, rank=rank, world_size=n_gpus)
    ones = torch.ones(1 << 20, device=device)
    torch.distributed.all_reduce(ones)
    total = ones[0].item()
    torch.distributed.destroy_process_group()
    if total != n_gpus:
        raise RuntimeError(f"{n_gpus} ones are {total:g}")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


if __name__ == "__main__":
    main(sys.argv[1:])
