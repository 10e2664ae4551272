"""The content of a lease, and its expiry with any clocks and after a power loss."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from include.control.leases.claim import LASTS_S, LeaseClaim
from include.control.leases.leases import Leases
from include.control.storage import objects
from include.control.storage.objects import LocalObjectStore
from include.errors import LeaseLostError
from tests.support.ledger.lease_holder import STREAM, STREAM_KEY, TABLE, claim_in

LONG_S, ALIVE_S, SHORT_S = 60.0, 0.45, 0.5


@pytest.mark.parametrize("skew_s", [-3600.0, 3600.0], ids=lambda skew: f"{skew:+.0f} s")
def test_a_lease_lasts_as_long_as_it_should_with_any_clocks(
    folder: Path, monkeypatch: pytest.MonkeyPatch, skew_s: float
) -> None:
    """A shared folder may stamp files by the clock of the machine that writes them."""

    class Stamped(LocalObjectStore):
        def put_if_absent(self, key: str, body: bytes) -> bool:
            return super().put_if_absent(key, body) and self._stamp(key)

        def put_if_match(self, key: str, body: bytes, etag: str) -> bool:
            return super().put_if_match(key, body, etag) and self._stamp(key)

        def _stamp(self, key: str) -> bool:
            os.utime(folder / key, (0, time.time() + skew_s))
            return True

    store = LocalObjectStore(folder)

    def beats() -> int:
        return LeaseClaim.from_bytes((folder / STREAM_KEY).read_bytes()).beats

    with monkeypatch.context() as patch, Leases(Stamped(folder), "skewed", lasts_s=ALIVE_S).stream(TABLE, STREAM):
        # The looker's clock goes on by as much as the holder takes for each of its heartbeats.
        patch.setattr(objects, "time", SimpleNamespace(monotonic=lambda: beats() * ALIVE_S / 3))
        while beats() * ALIVE_S / 3 < 2 * ALIVE_S:
            with (
                pytest.raises(LeaseLostError, match="held by skewed"),
                Leases(store, "other", patience_s=0).stream(TABLE, STREAM),
            ):
                pytest.fail("both held it")
            time.sleep(ALIVE_S / 10)

    Stamped(folder).put_if_absent(STREAM_KEY, LeaseClaim("dead", "nonce", lasts_s=SHORT_S).to_bytes())
    with Leases(LocalObjectStore(folder), "other", patience_s=LONG_S).stream(TABLE, STREAM) as waited:
        assert SHORT_S <= waited.seconds < LONG_S / 2
        assert waited.holders == "dead"


@pytest.mark.parametrize("body", [b"", b'{"holder": "run o', b"[]", b"\xff"], ids=repr)
def test_a_damaged_lease_expires_like_any_other(folder: Path, monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    store, clock = LocalObjectStore(folder), SimpleNamespace(monotonic=lambda: 0.0)
    monkeypatch.setattr(objects, "time", clock)
    folder.mkdir()
    note = f"{TABLE}.waiting-{0:020d}-0123-table"
    for key in (STREAM_KEY, f"{TABLE}.table", note):
        (folder / key).write_bytes(body)
    with (
        pytest.raises(LeaseLostError, match="the lease cannot be read"),
        Leases(store, "too soon", patience_s=0).stream(TABLE, STREAM),
    ):
        pytest.fail("nobody knows yet that its holder is dead")
    clock.monotonic = lambda: LASTS_S + 1
    with Leases(store, "the next", patience_s=LONG_S).table(TABLE):
        pass
    with Leases(store, "one more", patience_s=LONG_S).stream(TABLE, STREAM):
        assert claim_in(store).holder == "one more"
    assert note not in store.keys("")
