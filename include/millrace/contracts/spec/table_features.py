"""The features of Delta tables that a spec may use."""

from __future__ import annotations

WRITER_FEATURES = (
    "allowColumnDefaults", "appendOnly", "changeDataFeed", "checkConstraints", "checkpointProtection", "domainMetadata",
    "generatedColumns", "identityColumns", "inCommitTimestamp", "invariants", "materializePartitionColumns",
    "rowTracking",
)  # fmt: skip
"""The features of Delta 4.4 that concern writers alone, and need no other feature that concerns readers."""

RESTORABLE = ("appendOnly", "changeDataFeed", "checkConstraints", "generatedColumns", "invariants")
"""Those with which delta-rs 1.6.6 commits to a table. It restores a refused version (ADR 18)."""
