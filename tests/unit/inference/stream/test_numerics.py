"""Numerics of answers: in each completion, in the manifest, and on the page where they differ."""

import json
from pathlib import Path

import pytest
from chain_cohort import SELF, Scribe, make_cohort, spec_of
from test_stage_counts import concluded

from cardiolens.inference.engine.ask import Ask, Numerics, Pictures, Reply
from cardiolens.inference.engine.readers import Reader
from cardiolens.storage import schemas, tables

ONE = Numerics("vllm 0.32.0", "NVIDIA H200", "FLASH_ATTN", 2)
OTHER = ONE._replace(tensor_parallel=4)


class Computing(Reader):
    """An engine that knows how it computes, in turn in each of some ways."""

    def __init__(self, *ways: Numerics) -> None:
        self._ways, self._asked = ways, 0

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        self._asked += 1
        return Reply("ANSWER: A", "stop", numerics=self._ways[self._asked % len(self._ways)])


@pytest.mark.parametrize(("prompts", "n_rows"), [((), 4), ((SELF,), 12)])
def test_one_way_to_compute_is_in_each_row_and_no_news_on_the_page(tmp_path: Path, prompts, n_rows) -> None:
    spec = spec_of(make_cohort(tmp_path, 4), *prompts)
    _, run = concluded(spec, Computing(ONE))
    (folder,) = (spec.store / "completions").iterdir()
    rows = tables.read(folder, schemas.COMPLETIONS, ONE._fields).to_pylist()
    assert len(rows) >= n_rows
    assert {tuple(row.values()) for row in rows} == {ONE}
    assert json.loads(run.manifest.read_text())["numerics"] == {"uniform": [{**ONE._asdict(), "requests": 4}]}
    assert "round differently" not in run.page.read_text()


def test_several_ways_are_counted_and_the_page_says_so(tmp_path: Path) -> None:
    direct = {"name": "standard", "style": "standard", "max_tokens": 64}
    _, run = concluded(spec_of(make_cohort(tmp_path, 4), direct), Computing(ONE, ONE, ONE, OTHER))
    found = json.loads(run.manifest.read_text())["numerics"]["uniform"]
    assert [(one["tensor_parallel"], one["requests"]) for one in found] == [(2, 3), (4, 1)]
    page = run.page.read_text()
    assert "The answers of uniform come from 2 ways to compute" in page
    assert "vllm 0.32.0, NVIDIA H200, FLASH_ATTN, tensor parallel 2 (3 requests)" in page


def test_what_an_engine_does_not_know_is_null(tmp_path: Path) -> None:
    _, run = concluded(spec_of(make_cohort(tmp_path, 2), SELF), Scribe())
    found = json.loads(run.manifest.read_text())["numerics"]["uniform"]
    assert found == [{**Numerics()._asdict(), "requests": 2}]
