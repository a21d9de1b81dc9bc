"""A small HTTP server on 127.0.0.1 that misbehaves on purpose, bounded in time and always shut
down."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LONGEST_WAIT = 5.0  # seconds that a stalled answer waits for the end of the test


@dataclass
class Exchange:
    """Requests that the server got, and the switch that ends its waiting."""

    base: str = ""
    requests: list[tuple[str, str]] = field(default_factory=list)  # path, Range header ("" if none)
    over: threading.Event = field(default_factory=threading.Event)

    def ranges(self, path: str = "/file") -> list[str]:
        return [header for asked, header in self.requests if asked == path]


class Answer(BaseHTTPRequestHandler):
    """One request; a behaviour calls these methods."""

    exchange: Exchange
    timeout = LONGEST_WAIT

    @property
    def offset(self) -> int:
        header = self.headers.get("Range", "")
        return int(header.removeprefix("bytes=").rstrip("-")) if header else 0

    def head(self, status: int, length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def whole(self, body: bytes) -> None:
        """Send `body`, or what follows the offset of a Range request, as a good server does."""
        self.part(body, len(body))

    def part(self, body: bytes, until: int) -> None:
        """Promise everything from the offset on, send only up to byte `until`."""
        start = self.offset
        if start:
            self.head(
                206, len(body) - start, Content_Range=f"bytes {start}-{len(body) - 1}/{len(body)}"
            )
        else:
            self.head(200, len(body))
        self.wfile.write(body[start:until])

    def log_message(self, format: str, *args: object) -> None:
        """Keep the tests' output quiet."""


@contextmanager
def serve(behaviour: Callable[[Answer], None]) -> Iterator[Exchange]:
    """Serve `behaviour` at a free port until the block ends."""
    exchange = Exchange()

    class Handler(Answer):
        def do_GET(self) -> None:
            exchange.requests.append((self.path, self.headers.get("Range", "")))
            try:
                behaviour(self)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client gave up, as it should

    Handler.exchange = exchange
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False  # so that closing waits for every answer
    exchange.base = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield exchange
    finally:
        exchange.over.set()
        server.shutdown()
        thread.join(timeout=LONGEST_WAIT)
        server.server_close()
