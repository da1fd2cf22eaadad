"""A server that answers prompts by a function, in place of the engine of a plan of text requests."""

import http.server
import json
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from running_server import running

from cardiolens.inference.plan.plan import Plan
from cardiolens.storage import schemas, tables


@contextmanager
def answering(reply_to: Callable[[str], str]) -> Iterator[tuple[Callable[[Plan], None], list[str]]]:
    """Serve on this machine; yield what answers a plan, and the prompts that were asked."""
    prompts: list[str] = []

    class Scripted(http.server.BaseHTTPRequestHandler):
        """Answers the user message of a chat."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompts.append(body["messages"][-1]["content"])
            message = {"message": {"content": reply_to(prompts[-1])}}
            content = json.dumps({"choices": [message]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with running(http.server.HTTPServer(("127.0.0.1", 0), Scripted)) as httpd:
        address = f"http://127.0.0.1:{httpd.server_port}/v1/chat/completions"
        yield (lambda planned: _ask_all(planned, address)), prompts


def _ask_all(planned: Plan, address: str) -> None:
    """Send the requests of a plan, and write the completions."""
    (name,) = planned.identities
    rows: list[dict[str, object]] = []
    for row in tables.read(planned.run.requests(name), schemas.REQUESTS).to_pylist():
        messages = [{"role": "system", "content": row["system"]}, {"role": "user", "content": row["prompt"]}]
        data = json.dumps({"messages": messages}).encode()
        with urllib.request.urlopen(address, data) as reply:
            text = json.load(reply)["choices"][0]["message"]["content"]
        done = {"status": "ok", "finish_reason": "stop"}
        rows.append({"request_key": row["request_key"], "text": text} | done)
    folder = planned.store.completions(planned.identities[name].model_key)
    tables.write_part(folder, tables.from_rows(rows, schemas.COMPLETIONS), schemas.COMPLETIONS)
