"""A planner for tests: a bronze, a silver and a gold table, and a check that planning changes nothing."""

from __future__ import annotations

from pathlib import Path

from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.planning.advice import Advice
from millrace.control.planning.planner import Planner
from millrace.settings import Settings
from tests.support.documents.specs import bronze_spec, catalog_of, gold_spec, silver_spec
from tests.support.ledger.delta_tables import day, file_contents

BRONZE, SILVER, GOLD = bronze_spec(), silver_spec(), gold_spec()
CATALOG = catalog_of(BRONZE, SILVER, GOLD)


class CheckedPlanner:
    """A planner that checks after each advice that no byte has changed."""

    def __init__(self, settings: Settings, everything: Path) -> None:
        self._settings = settings
        self._everything = everything

    def __call__(self, spec: AnySpec = BRONZE, number: int = 1, *, reprocess: bool = False) -> Advice:
        before = file_contents(self._everything)
        try:
            return Planner(CATALOG, self._settings).advise(spec, day(number), reprocess=reprocess)
        finally:
            assert file_contents(self._everything) == before
