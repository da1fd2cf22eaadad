"""A cohort's requests asked over HTTP without Ray: what a sweep streams through an actor is one loop here."""

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa

from cardiolens.base.errors import RunError
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import StreamSpec
from cardiolens.inference.engine.http.engine import HttpEngine
from cardiolens.inference.models.token_counts import Rendering
from cardiolens.inference.plan.missing import missing
from cardiolens.inference.plan.plan import Plan, plan
from cardiolens.inference.stream.loader import StudyLoader
from cardiolens.inference.stream.replica import Replica
from cardiolens.storage import schemas, tables
from tests.unit.http_server import MODEL, Server, serving
from tests.unit.small_cohort import sweep_spec

KEY = "sk-0123456789abcdef"  # of SOME_KEY
STREAM = StreamSpec(flush_rows=8, flush_seconds=0.5)


def served(**http: Any) -> ModelSpec:
    """A model behind a server, with a key in SOME_KEY."""
    defaults = {"base_url": "http://127.0.0.1/v1", "api_model": MODEL, "api_key_env": "SOME_KEY"}
    told = {"name": "m", "engine": "http", "revision": "r", "long_side": 8}
    return ModelSpec.model_validate(told | {"http": defaults | http})


def planned_for_server(root: Path, *subtasks: str, decoding: str = "letters", **http: Any) -> Plan:
    """The plan of a small cohort for that model."""
    asked = subtasks or ("C01", "C02", "C03", "C10", "L01", "L02")
    return plan(sweep_spec(root, served(**http).model_dump(), subtask=list(asked), answer_format=decoding))


class Asked:
    """One run against a server: its plan, and where its completions go."""

    def __init__(
        self, planned: Plan, folder: Path, *, tries: int = 8, at_once: int = 16, **http: Any
    ) -> None:
        self.tries, self.at_once = tries, at_once
        self.folder = folder / "completions"
        self._planned = planned
        self._http = http

    async def run(self, base_url: str) -> None:
        """Ask what is missing; the first error of a study is raised when all are done."""
        planned = self._planned
        model = served(base_url=base_url, **self._http).model_copy(update={"max_num_seqs": self.at_once})
        work = missing(planned.run.requests("m"), self.folder, STREAM.max_attempts).work
        read = StudyLoader(planned.store.root, planned.volumes, Rendering(8))
        engine = HttpEngine(model, self.folder, lambda: 0.0, tries=self.tries, first_wait=0.002)
        replica = Replica(lambda: engine, self.folder, model.at_once, STREAM)

        async def study(row: int) -> None:
            async for _ in replica(pa.concat_tables(read(work.slice(row, 1)))):
                pass

        ended = await asyncio.gather(*map(study, range(work.num_rows)), return_exceptions=True)
        others = asyncio.all_tasks()
        engine.close()
        await asyncio.gather(*asyncio.all_tasks() - others)
        for error in filter(None, ended):
            raise error

    def against(self, server: Server) -> None:
        async def run() -> None:
            async with serving(server) as base_url:
                await self.run(base_url)

        asyncio.run(run())

    def ended(self, server: Server) -> str:
        """Ask what is missing; the message of the error that ended the run, empty without one."""
        try:
            self.against(server)
        except RunError as error:
            return str(error)
        return ""

    def rows(self) -> list[dict[str, Any]]:
        return tables.read(self.folder, schemas.COMPLETIONS).to_pylist()

    def answered(self) -> dict[str, str]:
        rows = [row for row in self.rows() if row["status"] == "ok"]
        replies = {row["request_key"]: row["text"] for row in rows}
        assert len(replies) == len(rows), "a request was completed twice"
        return replies
