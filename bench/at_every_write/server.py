"""An OpenAI-compatible server on loopback that answers at once and counts what it was asked."""

import json
import threading
from collections import Counter
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class AnsweringServer:
    """Server in threads of this process; the same request gets the same answer."""

    def __init__(self) -> None:
        self._asks: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()

    def take_asks(self) -> Counter[str]:
        """Return how often each request was asked since the last call."""
        with self._lock:
            asks, self._asks = self._asks, Counter()
        return asks

    def _noted(self, body: bytes) -> str:
        digest = sha256(body).hexdigest()
        with self._lock:
            self._asks[digest] += 1
        return digest

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        noted = self._noted

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                digest = noted(self.rfile.read(int(self.headers["Content-Length"])))
                message = {"role": "assistant", "content": f"ANSWER: {'AB'[int(digest, 16) % 2]}"}
                usage = {"prompt_tokens": 100, "completion_tokens": 4, "total_tokens": 104}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                reply = {"object": "chat.completion", "model": "tiny", "choices": [choice], "usage": usage}
                content = json.dumps(reply).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                return

        return Handler
