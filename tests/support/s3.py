"""A small object store that speaks enough of S3's protocol, on the loopback address."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


class Store:
    """Objects by "bucket/key", and uploads under way."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"
    store: Store

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _parts(self) -> tuple[str, dict[str, list[str]]]:
        url = urlsplit(self.path)
        return unquote(url.path.lstrip("/")), parse_qs(url.query, keep_blank_values=True)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "content_length" not in headers:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _xml(self, text: str) -> None:
        self._answer(200, f'<?xml version="1.0"?>{text}'.encode(), content_type="application/xml")

    def do_PUT(self) -> None:
        key, query = self._parts()
        body = self._body()
        source = self.headers.get("x-amz-copy-source") or self.headers.get("x-goog-copy-source")
        if source and unquote(source).lstrip("/") not in self.store.objects:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        elif source:
            self.store.objects[key] = self.store.objects[unquote(source).lstrip("/")]
            self._xml('<CopyObjectResult><ETag>"x"</ETag></CopyObjectResult>')
        elif "partNumber" in query:
            self.store.uploads[query["uploadId"][0]][int(query["partNumber"][0])] = body
            self._answer(200, ETag='"x"')
        else:
            self.store.objects[key] = body
            self._answer(200, ETag='"x"')

    def do_POST(self) -> None:
        key, query = self._parts()
        body = self._body()
        if "uploads" in query:
            name = uuid.uuid4().hex
            self.store.uploads[name] = {}
            self._xml(
                "<InitiateMultipartUploadResult>"
                f"<UploadId>{name}</UploadId></InitiateMultipartUploadResult>"
            )
        elif "uploadId" in query:
            parts = self.store.uploads.pop(query["uploadId"][0])
            self.store.objects[key] = b"".join(parts[number] for number in sorted(parts))
            self._xml(
                '<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>'
            )
        else:
            names = [part.partition("</Key>")[0] for part in body.decode().split("<Key>")[1:]]
            for name in names:
                self.store.objects.pop(f"{key.rstrip('/')}/{name}", None)
            rows = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
            self._xml(f"<DeleteResult>{rows}</DeleteResult>")

    def do_GET(self) -> None:
        key, query = self._parts()
        if "list-type" in query:
            self._list(key.rstrip("/"), query.get("prefix", [""])[0])
            return
        data = self.store.objects.get(key)
        if data is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        common = {"ETag": '"x"', "last_modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
        wanted = self.headers.get("range")
        if wanted and self.command == "GET":
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start, stop = int(first), min(int(last or len(data) - 1) + 1, len(data))
            span = f"bytes {start}-{stop - 1}/{len(data)}"
            self._answer(206, data[start:stop], content_range=span, **common)
        else:
            self._answer(200, data, content_length=str(len(data)), **common)

    do_HEAD = do_GET

    def do_DELETE(self) -> None:
        key, query = self._parts()
        if "uploadId" in query:
            self.store.uploads.pop(query["uploadId"][0], None)
        self.store.objects.pop(key, None)
        self._answer(204)

    def _list(self, bucket: str, prefix: str) -> None:
        rows = "".join(
            f"<Contents><Key>{escape(name[len(bucket) + 1 :])}</Key><Size>{len(data)}</Size>"
            '<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"x"</ETag></Contents>'
            for name, data in sorted(self.store.objects.items())
            if name.startswith(f"{bucket}/{prefix}")
        )
        self._xml(f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>")


@contextmanager
def s3_server() -> Iterator[tuple[str, Store]]:
    """Serve an empty store; yield its address and what it holds."""
    store = Store()
    handler = type("BoundHandler", (Handler,), {"store": store})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", store
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
