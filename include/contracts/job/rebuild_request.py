"""What a person asks of a rebuild. It travels to the driver as a file beside the report, like a quarantine request."""

from __future__ import annotations

from include.contracts.job.request_file import RequestFile


class RebuildRequest(RequestFile):
    """How a table is built anew.

    Attributes:
        downstream: the tables that read it, directly or not, are built anew with it.
        allow_deletes: let more keys be deleted by absence than `max_deleted_percent`, in whatever interval; what was
            allowed of the table in use is allowed anyhow.
        allow_missing: switch although landing files that the table holds rows of are not there any more.
        cancel: give up the rebuild that is under way instead; what was switched already stays.
        undo: put the rows back instead that the last rebuild has replaced.
        said_by: who asks.
        why: the reason, for those who look at it later.
    """

    downstream: bool = False
    allow_deletes: bool = False
    allow_missing: bool = False
    cancel: bool = False
    undo: bool = False
    said_by: str = ""
    why: str = ""
