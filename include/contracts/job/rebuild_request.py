"""A person's request to rebuild a table."""

from __future__ import annotations

from include.contracts.job.request_file import RequestFile


class RebuildRequest(RequestFile):
    """A request to rebuild a table.

    Attributes:
        downstream: whether to rebuild also the tables that read it, directly or not.
        allow_deletes: whether any interval may delete more absent keys than `max_deleted_percent`; deletes that were
            approved for the table in use are allowed in any case.
        allow_missing: whether to switch although landing files whose rows the table holds are missing now.
        cancel: give up the rebuild in progress instead; tables that were switched already stay switched.
        undo: restore the rows that the last rebuild replaced instead; with `downstream` those of all tables that it
            replaced.
        said_by: the person who asks.
        why: the reason, for the history of the table.
    """

    downstream: bool = False
    allow_deletes: bool = False
    allow_missing: bool = False
    cancel: bool = False
    undo: bool = False
    said_by: str = ""
    why: str = ""
