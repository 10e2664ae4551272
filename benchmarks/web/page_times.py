"""``python -m benchmarks.web.page_times LAKE TIMES PATH...``: the time of each request for a page, and of the API
server's health endpoint, which a second client asks all the while.

It starts an API server, asks it as a user who has logged in, and prints `PageTimes` as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Event

import httpx

from benchmarks.cost import cpu_of_tree
from benchmarks.web.api_server import HEALTH, ApiServer, api_server

NOTHING, FIRST, ONE, MANY = "no page", "the first request of each page", "one reader", "four readers at once"
"""Who asks for pages while the health endpoint is asked."""

_READERS = 4
_PAUSE_S = 0.1
_QUIET_S = 10


@dataclass
class PageTimes:
    """The times of all requests.

    Attributes:
        pages: page -> milliseconds of each request by a single reader, the first one included.
        cpu: page -> CPU-milliseconds of the API server for each request but the first, on average.
        health: who asked for pages -> milliseconds of each request to the health endpoint meanwhile.
    """

    pages: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    health: dict[str, list[float]] = field(default_factory=dict)


def measure_pages(lake: Path, times: int, pages: Sequence[str]) -> PageTimes:
    """Ask for each page so many times, first by one reader and then by four at once.

    Raises:
        SystemExit: a page is not answered.
    """
    result = PageTimes()
    with api_server(lake) as server, server.client() as reader:
        with _health_watched(server, result, NOTHING):
            time.sleep(_QUIET_S)
        with _health_watched(server, result, FIRST):
            result.pages = {page: [_ask(reader, page)] for page in pages}
        with _health_watched(server, result, ONE):
            for page in pages:
                before = cpu_of_tree(server.pid)
                result.pages[page] += [_ask(reader, page) for _ in range(times - 1)]
                result.cpu[page] = round(1000 * (cpu_of_tree(server.pid) - before) / (times - 1), 1)
        with _health_watched(server, result, MANY), ThreadPoolExecutor(_READERS) as readers:
            for _ in readers.map(lambda _: _ask_all(server, pages, times // _READERS), range(_READERS)):
                pass
    return result


def _ask_all(server: ApiServer, pages: Sequence[str], times: int) -> None:
    with server.client() as reader:
        for _ in range(times):
            for page in pages:
                _ask(reader, page)


@contextmanager
def _health_watched(server: ApiServer, result: PageTimes, who: str) -> Iterator[None]:
    """Ask for the health of the server until the end of the block."""
    is_over = Event()

    def watch() -> list[float]:
        with server.client() as client:
            answers = [_ask(client, HEALTH)]
            while not is_over.wait(_PAUSE_S):
                answers.append(_ask(client, HEALTH))
        return answers

    with ThreadPoolExecutor(1) as watchers:
        watching = watchers.submit(watch)
        try:
            yield
        finally:
            is_over.set()
        result.health[who] = watching.result()


def _ask(client: httpx.Client, page: str) -> float:
    """Return the milliseconds of a request."""
    started = time.perf_counter()
    answer = client.get(page)
    milliseconds = 1000 * (time.perf_counter() - started)
    if answer.status_code != httpx.codes.OK:
        raise SystemExit(f"{page}: {answer.status_code} {answer.text[:500]}")
    return round(milliseconds, 1)


if __name__ == "__main__":
    print(json.dumps(asdict(measure_pages(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))))  # noqa: T201
