"""A small web server for one reader: the pages of a store, as they are when they are requested.

It only reads, and by default only this machine can reach it. If others can, each request needs a token,
which the printed address contains and a cookie then keeps. Other sites that are open in the same browser
learn nothing: requests under another name than the server's own are refused (DNS rebinding), and no site
may embed or script the pages.
"""

from __future__ import annotations

import secrets
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

COOKIE = "autotune-token"
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_OWN = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""For each address that means all addresses of the machine, one that a browser can open."""
SLOWEST_CLIENT_SECONDS = 10.0

HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True)
class Shown:
    """A page: HTML, and after how many seconds a browser loads it again (``None``: never)."""

    html: str
    again: float | None = None
    status: HTTPStatus = HTTPStatus.OK


Pages = Callable[[str, bool], Shown]
"""Gives the page at a path; the flag says that it must not reload (``?still``)."""


@dataclass
class LiveServer:
    """Serves ``pages`` on ``host`` and ``port`` (0: any that is free) until :meth:`stop`.

    Requests need ``token`` unless it is empty, which is only safe if nobody but the user can reach ``host``.
    Raises ``OSError`` if the port is taken, or ``host`` is not an address of this machine.
    """

    pages: Pages
    host: str = "127.0.0.1"
    port: int = 0
    token: str = ""
    _server: ThreadingHTTPServer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        handler = type("Handler", (_Handler,), {"live": self})
        server = type("Server", (_Server,), {"address_family": _family(self.host)})
        self._server = server((self.host, self.port), handler)
        self.port = self._server.server_address[1]

    @property
    def address(self) -> str:
        """The address to open in a browser on this machine."""
        return self._address(_OWN.get(self._bound, self.host))

    @property
    def elsewhere(self) -> str:
        """The address to open on another machine; empty unless the server listens on all addresses."""
        return self._address(socket.gethostname()) if self._bound in _OWN else ""

    @property
    def _bound(self) -> str:
        """The address that it listens on, as numbers."""
        return str(self._server.server_address[0])

    def _address(self, host: str) -> str:
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/" + (f"?token={self.token}" if self.token else "")

    def run(self) -> None:
        """Answer until interrupted."""
        try:
            self._server.serve_forever(poll_interval=0.2)
        finally:
            self._server.server_close()

    def stop(self) -> None:
        """End :meth:`run`, from another thread."""
        self._server.shutdown()

    def admits(self, name: str) -> bool:
        """Whether ``name`` (the ``Host`` header) is a name of this server."""
        if self.token:
            return True  # the machine may have any name; the token protects it
        try:
            host = urlsplit(f"//{name}").hostname if name else None
        except ValueError:  # not an address, such as a single "["
            return False
        return host in LOOPBACK or host == self.host

    def knows(self, offered: str) -> bool:
        return not self.token or secrets.compare_digest(offered.encode(), self.token.encode())


def new_token() -> str:
    return secrets.token_urlsafe(24)


def _family(host: str) -> int:
    return int(socket.AF_INET6 if ":" in host else socket.AF_INET)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore browsers that close the connection early: people reload pages."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    live: ClassVar[LiveServer]
    timeout = SLOWEST_CLIENT_SECONDS
    server_version = "autotune"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, with_body: bool) -> None:
        try:
            address = urlsplit(self.path)
            asked = parse_qs(address.query, keep_blank_values=True)
        except ValueError:
            self._refuse(HTTPStatus.BAD_REQUEST, "This is no address.", with_body)
            return
        offered = asked.get("token", [""])[0]
        if not self.live.admits(self.headers.get("Host", "")):
            self._refuse(HTTPStatus.FORBIDDEN, "This server only answers to its own name.", with_body)
        elif self.live.knows(offered or self._cookie()):
            shown = self.live.pages(address.path, "still" in asked)
            headers = {} if shown.again is None else {"Refresh": f"{shown.again:.0f}"}
            if offered and self.live.token:  # our token, not the text that came, which may contain more
                headers["Set-Cookie"] = f"{COOKIE}={self.live.token}; HttpOnly; SameSite=Strict; Path=/"
            self._send(shown, headers, with_body)
        else:
            why = "Open the address that autotune dashboard has printed."
            self._refuse(HTTPStatus.FORBIDDEN, why, with_body)

    def _cookie(self) -> str:
        try:
            found = SimpleCookie(self.headers.get("Cookie", "")).get(COOKIE)
        except CookieError:
            return ""
        return found.value if found is not None else ""

    def _refuse(self, status: HTTPStatus, why: str, with_body: bool) -> None:
        html = f"<!doctype html><title>autotune</title><p>{why}</p>"
        self._send(Shown(html, status=status), {}, with_body)

    def _send(self, shown: Shown, headers: Mapping[str, str], with_body: bool) -> None:
        body = shown.html.encode()
        self.send_response(shown.status)
        for name, value in {**HEADERS, **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing: the terminal belongs to the user."""
