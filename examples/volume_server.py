"""A server for a model of volumes (M3D, RadFM): the frames of a request become one array, in the order shown.

    python examples/volume_server.py my_module:answer 8001      # then model=[my_volumes]

`answer(volume, text)` is your function around the model: `volume` is uint8 (DEPTH, SIDE, SIDE), `text` is all
text of the request, in order, with `[slice n]` where frame n stood. It returns the reply.
"""

import base64
import io
import json
import sys
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import Any

import numpy as np
from PIL import Image

MODEL = "volumes"  # http.api_model of conf/model/my_volumes.yaml
DEPTH, SIDE = 32, 256  # of M3D; RadFM takes others
MOST_BYTES = 256 << 20  # of a request
Answer = Callable[[np.ndarray, str], str]


def volume_of(frames: Sequence[np.ndarray]) -> np.ndarray:
    """Stack frames, scaled to SIDE, and the stack to DEPTH by its nearest frames; black without any."""
    if not frames:
        return np.zeros((DEPTH, SIDE, SIDE), np.uint8)
    scaled = np.stack([np.asarray(Image.fromarray(frame).resize((SIDE, SIDE))) for frame in frames])
    nearest = np.rint(np.linspace(0, len(frames) - 1, DEPTH)).astype(int)
    return scaled[nearest]


def read(messages: Sequence[dict[str, Any]]) -> tuple[np.ndarray, str]:
    """The volume and the text of a chat."""
    frames: list[np.ndarray] = []
    texts: list[str] = []
    for message in messages:
        content = message["content"]
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if part["type"] == "text":
                texts.append(part["text"])
            else:
                encoded = part["image_url"]["url"].partition(",")[2]
                image = Image.open(io.BytesIO(base64.b64decode(encoded, validate=True)))
                frames.append(np.asarray(image.convert("L")))
                texts.append(f"[slice {len(frames)}]")
    return volume_of(frames), "\n".join(texts)


def server(answer: Answer, port: int) -> ThreadingHTTPServer:
    """Serve chat completions on this machine alone; requests that cannot be read get status 400."""

    class Volumes(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            try:
                length = int(self.headers["Content-Length"])
                if not 0 < length <= MOST_BYTES:
                    raise ValueError(f"a body of {length} bytes; expected 1 to {MOST_BYTES}")
                volume, text = read(json.loads(self.rfile.read(length))["messages"])
            except (KeyError, TypeError, ValueError, OSError) as error:
                self.reply(400, {"error": {"message": f"cannot be read: {error}"}})
                return
            reply = answer(volume, text)
            choice = {"message": {"content": reply}, "finish_reason": "stop"}
            used = {"prompt_tokens": len(text.split()), "completion_tokens": len(reply.split())}
            self.reply(200, {"model": MODEL, "choices": [choice], "usage": used})

        def reply(self, status: int, tree: object) -> None:
            content = json.dumps(tree).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return ThreadingHTTPServer(("127.0.0.1", port), Volumes)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if sys.argv[1:2] in (["-h"], ["--help"]) else 2)
    module, _, name = sys.argv[1].partition(":")
    sys.path.insert(0, "")  # the folder that it is started in
    serving = server(getattr(import_module(module), name), int(sys.argv[2]))
    print(f"serving {sys.argv[1]} at http://127.0.0.1:{sys.argv[2]}/v1", flush=True)
    serving.serve_forever()
