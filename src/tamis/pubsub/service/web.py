"""/health, /ready and /metrics of a router, on a separate thread."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tamis.pubsub.service.config import ConfigError
from tamis.pubsub.service.metrics import metrics_text

if TYPE_CHECKING:
    from tamis.pubsub.service.server import RouterServer


class Web:
    """Answers for one router."""

    def __init__(self, listen: str, server: "RouterServer") -> None:
        """Listen on HOST:PORT; port 0 takes a free one."""
        host, _, port = listen.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise ConfigError(f"`listen` is HOST:PORT, such as 127.0.0.1:9102, not {listen}")

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                """Answer one request."""
                code, kind, text = answer(self.path, server)
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                """Say nothing: the router's own log is enough."""

        try:
            self._server = ThreadingHTTPServer((host.strip("[]"), int(port)), Handler)
        except OSError as error:
            raise ConfigError(f"cannot listen on {listen}: {error.strerror}") from None
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True, name="tamis-web").start()

    @property
    def address(self) -> str:
        """Where it listens."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def close(self) -> None:
        """Listen no longer."""
        self._server.shutdown()
        self._server.server_close()


def answer(path: str, server: "RouterServer") -> tuple[int, str, bytes]:
    """Status, content type and body for a path."""
    if path == "/metrics":
        return 200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(server)
    if path == "/health":
        return 200, "application/json", b'{"status": "alive"}\n'
    if path == "/ready":
        trouble = server.router.counters.trouble if server.ready.is_set() else "reading subscriptions"
        status = {"ready": server.is_ready, "router": server.router.name, "trouble": trouble}
        return (200 if server.is_ready else 503), "application/json", json.dumps(status).encode() + b"\n"
    return 404, "text/plain", b"there is /health, /ready and /metrics\n"
