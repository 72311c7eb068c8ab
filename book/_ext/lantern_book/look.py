"""Open built pages as a reader does: in Chromium, with every other host closed off.

``python -m lantern_book.look OUT a/a3 a/a4`` writes screenshots of pages, light and dark, wide and
narrow. The browser tests use the same :class:`Reader`. It needs playwright and a Chromium that is
already installed (found on the path, or named by ``LANTERN_CHROMIUM``); it downloads none.
"""

import argparse
import functools
import gzip
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Response, Route, sync_playwright

HOST = "127.0.0.1"
FLAGS = (
    "--no-sandbox",  # CI runs as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {HOST}",
)
SIZES = {"wide": (1280, 900), "narrow": (390, 844)}  # [CSS pixels]; narrow is a phone
GZIP_LEVEL = 6


def find_chromium() -> str | None:
    """Return the path of an installed Chromium, or None."""
    return os.environ.get("LANTERN_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a page makes dozens of requests."""


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of this machine, and give its address."""
    server = ThreadingHTTPServer((HOST, 0), functools.partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Visit:
    """One page opened once, and what the browser asked for and complained about."""

    page: Page
    foreign: list[str] = field(default_factory=list)  # requests to other hosts, all refused
    failed: list[str] = field(default_factory=list)  # requests without a good answer
    errors: list[str] = field(default_factory=list)  # console errors and uncaught exceptions
    responses: list[Response] = field(default_factory=list)

    def read_to_the_end(self) -> None:
        """Scroll through the page, so that everything that loads late has loaded."""
        height = self.page.evaluate("document.scrollingElement.scrollHeight")
        for top in range(0, int(height), 800):
            self.page.evaluate(f"scrollTo(0, {top})")
            self.page.wait_for_timeout(20)
        self.page.wait_for_function(
            "[...document.querySelectorAll('.lt-explorable__data')]"
            ".every(data => data.parentElement.classList.contains('lt-live'))"
        )
        self.page.evaluate("scrollTo(0, 0)")
        self.page.wait_for_load_state("networkidle")

    def weights(self) -> dict[str, int]:
        """Return the gzipped size of every file the page asked for, by path [bytes]."""
        return {
            urlsplit(response.url).path: len(gzip.compress(response.body(), GZIP_LEVEL, mtime=0))
            for response in self.responses
        }


class Reader:
    """A browser and a server for one built book; use it in a ``with`` statement."""

    def __init__(self, html: Path, chromium: str) -> None:
        """Take the folder of the built pages and the path of Chromium."""
        self._html = html
        self._chromium = chromium

    def __enter__(self) -> "Reader":
        """Start both."""
        self._server = serve(self._html)
        self.address = self._server.__enter__()
        self._playwright = sync_playwright().start()
        self._browser: Browser = self._playwright.chromium.launch(
            executable_path=self._chromium, headless=True, args=list(FLAGS)
        )
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop both."""
        self._browser.close()
        self._playwright.stop()
        self._server.__exit__(None, None, None)

    @contextmanager
    def visit(self, name: str, size: str = "wide", dark: bool = False, **options: Any) -> Iterator[Visit]:
        """Open a page by name (``a/a3``) in a fresh browser profile."""
        width, height = SIZES[size]
        context = self._browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", **options
        )
        try:
            visit = Visit(context.new_page())
            self._watch(visit)
            visit.page.goto(f"{self.address}{name}.html", wait_until="load")
            yield visit
        finally:
            context.close()

    def _watch(self, visit: Visit) -> None:
        def guard(route: Route) -> None:
            if urlsplit(route.request.url).hostname == HOST:
                route.continue_()
            else:
                visit.foreign.append(route.request.url)
                route.abort()

        def keep(response: Response) -> None:
            visit.responses.append(response)
            if response.status >= 400:
                visit.failed.append(f"{response.status} {response.url}")

        page = visit.page
        page.route("**/*", guard)
        page.on("response", keep)
        page.on("requestfailed", lambda request: visit.failed.append(request.url))
        page.on("pageerror", lambda error: visit.errors.append(str(error)))
        page.on("console", lambda line: visit.errors.append(line.text) if line.type == "error" else None)


def main() -> None:
    """Write screenshots of pages."""
    parser = argparse.ArgumentParser(prog="python -m lantern_book.look", description=__doc__)
    parser.add_argument("out", type=Path, help="folder for the pictures")
    parser.add_argument("pages", nargs="+", help="page names, like a/a3")
    parser.add_argument("--html", type=Path, default=Path("_build/html"), help="the built book")
    options = parser.parse_args()
    chromium = find_chromium()
    if chromium is None:
        parser.error("no Chromium found; install one or set LANTERN_CHROMIUM")
    options.out.mkdir(parents=True, exist_ok=True)
    with Reader(options.html, chromium) as reader:
        for name in options.pages:
            for size in SIZES:
                for dark in (False, True):
                    with reader.visit(name, size, dark) as visit:
                        visit.read_to_the_end()
                        kind = f"{size}-{'dark' if dark else 'light'}"
                        target = options.out / f"{name.replace('/', '-')}-{kind}.png"
                        visit.page.screenshot(path=target, full_page=True)
                        print(target, *visit.errors, *visit.foreign, *visit.failed)


if __name__ == "__main__":
    main()
