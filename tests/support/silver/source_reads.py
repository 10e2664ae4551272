"""What the batches of a silver table have read of its sources, whatever streams it had."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from millrace.control.gates.gates import Gates
from millrace.control.log.batch import Intent
from millrace.control.log.delta_log import remaining_commits
from tests.support.lakehouse import Lakehouse


def intents(shop: Lakehouse, table: str) -> list[Intent]:
    """Return the intents of all batches of a table, in the order of their commits."""
    commits = remaining_commits(shop.paths.table(table), None)
    return [Intent.model_validate(commit.metadata) for commit in commits if commit.txns]


def require_read_once(shop: Lakehouse, table: str, sources: Iterable[str]) -> None:
    """Require that each batch read a source from where the last one of any stream ended, up to what is certified."""
    consumed = [intent.sources.ranges for intent in intents(shop, table)]
    for source in sources:
        spans = [ranges[source] for ranges in consumed if source in ranges]
        read = [(after, upto) for after, upto in spans if after != upto]
        assert read[0][0] is None
        assert all(earlier[1] == later[0] for earlier, later in pairwise(read)), (source, read)
        assert read[-1][1] == Gates(shop.paths).certified(source)
