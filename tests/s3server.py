"""moto's S3 server on loopback, in its own thread, which can fail on demand."""

import logging
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import BaseWSGIServer, make_server

BUCKET = "bucket"


class S3Server:
    """An S3 server with one bucket; ``failing`` names how every tenth response fails.

    reset
        The connection is reset before a response.
    busy
        The response is 503.
    cut
        Half of the promised content arrives, then the connection is reset.
    """

    def __init__(self) -> None:
        self.failing: tuple[str, ...] = ()
        self.requests = 0
        self.failed = 0
        self.before: Callable[[dict[str, Any]], None] = lambda environ: None
        self._app = DomainDispatcherApplication(create_backend_app)
        self._port = 0
        self._server: BaseWSGIServer | None = None

    @property
    def url(self) -> str:
        """Return the server's address."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start serving, at the same port as before."""
        self._server = make_server("127.0.0.1", self._port, self._answer, threaded=True)
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Stop serving: connections are refused, but the objects are kept."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def put(self, key: str, content: bytes, **more: str) -> str:
        """Upload an object and return its address; ``more`` is passed to boto3."""
        before, self.before = self.before, lambda environ: None
        _client(self.url).put_object(Bucket=BUCKET, Key=key, Body=content, **more)
        self.before = before
        return f"s3://{BUCKET}/{key}"

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        self.requests += 1
        self.before(environ)
        how = ""
        if self.failing and self.requests % 10 == 0:
            how = self.failing[self.failed % len(self.failing)]
            self.failed += 1
        if how == "busy":
            start("503 Service Unavailable", [("Content-Length", "0")])
            return [b""]
        if how == "reset":
            _reset(environ["werkzeug.socket"])
            return []
        content: Iterable[bytes] = self._app(environ, start)
        return _cut(content, environ["werkzeug.socket"]) if how == "cut" else content


def _cut(content: Iterable[bytes], connection: socket.socket) -> Iterator[bytes]:
    whole = b"".join(content)
    yield whole[: len(whole) // 2]
    _reset(connection)


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def _client(url: str) -> Any:
    import boto3

    return boto3.client("s3", endpoint_url=url)


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Start a server with its bucket; the environment has its address and credentials."""
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    from s3fs import S3FileSystem

    server = S3Server()
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_ENDPOINT_URL", server.url)
        patch.setenv("AWS_ACCESS_KEY_ID", "someone")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")  # otherwise queried for credentials
        S3FileSystem.clear_instance_cache()  # a cached instance keeps its old address
        _client(server.url).create_bucket(Bucket=BUCKET)
        yield server
        S3FileSystem.clear_instance_cache()
    server.stop()
