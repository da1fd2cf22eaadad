"""The stream without Ray: when it is used, and how it ends."""

import asyncio
import gc
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from cardiolens.base.errors import RunError
from cardiolens.inference.stream.pipeline import answers_here, need_no_cluster


class Unreached:
    """A replica of a server that nobody can reach."""

    async def __call__(self, block: pa.Table) -> AsyncIterator[pa.Table]:
        await asyncio.sleep(0.01)
        if block.num_rows:
            raise RunError("cannot be reached")
        yield block

    async def close(self) -> None: ...


def test_an_error_of_every_block_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    work = [pa.table({"row": [number]}) for number in range(20)]
    with pytest.raises(RunError, match="cannot be reached"):
        list(answers_here(Unreached, lambda block: iter([block]), work, 20))  # type: ignore[arg-type]
    gc.collect()
    assert caplog.text == ""


def model(name: str, **fields: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"name": name, "http": None, "simulated": False, "engine": "vllm"} | fields)


SERVER = model("server", http="address", engine="http")
ORACLE = model("oracle", simulated=True, engine="oracle")
LOCAL = model("local")


@pytest.mark.parametrize(
    ("left", "none_needed"),
    [
        ({SERVER.name: 9}, True),
        ({SERVER.name: 9, ORACLE.name: 9}, True),
        ({SERVER.name: 0, ORACLE.name: 9}, True),
        ({SERVER.name: 9, ORACLE.name: 900}, False),
        ({SERVER.name: 9, LOCAL.name: 9}, False),
        ({SERVER.name: 9, LOCAL.name: 0}, True),
        ({ORACLE.name: 9}, False),
    ],
)
def test_no_cluster_is_needed_for_few_requests_beside_a_server(
    left: dict[str, int], none_needed: bool
) -> None:
    models = [one for one in (SERVER, ORACLE, LOCAL) if one.name in left]
    plan = SimpleNamespace(spec=SimpleNamespace(model=models, cluster=SimpleNamespace(address=None)))
    remaining = {name: SimpleNamespace(left=number) for name, number in left.items()}
    assert need_no_cluster(plan, remaining) is none_needed  # type: ignore[arg-type]
