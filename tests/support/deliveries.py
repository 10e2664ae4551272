"""Deliveries of a source system of orders: files in the landing folder of a day."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from millrace.contracts.spec.table_spec import BronzeSpec
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import day

AN_ORDER = '{"order_id": "1"}\n'


@dataclass(frozen=True)
class Deliver:
    """The landing files of the spec `bronze.orders`."""

    landing: Path

    def __call__(self, name: str, content: bytes | str = AN_ORDER, number: int = 1) -> Path:
        """Put a file into the folder of day `number`; return its path."""
        path = self.landing / "orders" / f"date={day(number).start:%Y-%m-%d}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


def orders_spec_of(file_format: str, files: str = "*", **source: str) -> BronzeSpec:
    """Return the spec of `bronze.orders` for deliveries of this format and these names."""
    return bronze_spec(source={"landing": "orders", "files": files, "format": file_format, **source})
