"""``python -m races.soak.other_tool TABLE``: another tool sets properties of a table that its spec states otherwise."""

from __future__ import annotations

import sys
from pathlib import Path

from millrace.control.log.property_commits import set_properties

PROPERTIES = {"delta.deletedFileRetentionDuration": "interval 20 days", "millrace.owner": "another tool"}

if __name__ == "__main__":
    set_properties(Path(sys.argv[1]), PROPERTIES, "another tool")
