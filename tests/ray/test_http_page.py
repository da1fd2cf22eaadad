"""The example of docs/guides/http.md, copied as it stands but for the server's address and name."""

import re
import sys
from pathlib import Path

import pytest

from tests.ray.processes import printed_by
from tests.ray.test_http import in_the_background
from tests.unit.http_server import MODEL, Server

pytestmark = [pytest.mark.ray, pytest.mark.full]

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "http.md"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}[^\n]*\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def shell(command: str, folder: Path) -> str:
    python = f"{command.replace('python ', f'{sys.executable} ', 1)} limit=2"
    return " ".join(printed_by(["sh", "-c", python], folder, COLUMNS="200").split())


def test_the_example_works_when_it_is_copied(tmp_path: Path) -> None:
    example, plans_and_asks = blocks("yaml")[0], blocks("sh")[0]
    plans, asks = (line.partition("   #")[0] for line in plans_and_asks.strip().splitlines())
    file = tmp_path / "conf" / "model" / "my_model.yaml"
    file.parent.mkdir(parents=True)
    server = Server()
    with in_the_background(server) as (url,):
        file.write_text(example.replace("http://127.0.0.1:8000/v1", url).replace("my-model", MODEL))
        assert "about" in shell(plans, tmp_path)
        assert not server.seen
        shown = shell(asks, tmp_path)
        assert len(server.seen) > 0
        assert " 0 failed, 0 overflow" in shown
        for required in ("revision", "base_url", "api_model"):
            broken = re.sub(rf"\b{required}: [^\s,}}]+,?", "", file.read_text())
            file.with_stem("broken").write_text(broken.replace("my_model", "broken"))
            with pytest.raises(AssertionError, match=required):
                shell(plans.replace("my_model", "broken"), tmp_path)
        uncounted = file.read_text().replace("image_tokens: 256", "").replace("my_model", "uncounted")
        file.with_stem("uncounted").write_text(uncounted)
        said = shell(plans.replace("my_model", "uncounted"), tmp_path)
        assert "uncounted: - prompt tokens, since nothing counts them: give image_tokens" in said
