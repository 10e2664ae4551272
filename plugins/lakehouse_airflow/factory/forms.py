"""The form of what a person lets happen to one version of a table."""

from __future__ import annotations

from collections.abc import Sequence

from airflow.sdk import Param


def version_form(tables: Sequence[str], *, version: tuple[str, str], reason: str) -> dict[str, Param]:
    """The fields of the form, in its order; none is filled in, so that nobody lets another table pass by oversight.

    Args:
        tables: the tables that may be meant.
        version: title and meaning of the version.
        reason: what the reason is about.
    """
    title, meaning = version
    return {
        "table": Param(type="string", enum=list(tables) or [""], title="Table"),
        "version": Param(type="integer", minimum=0, title=title, description_md=meaning),
        "reason": Param(type="string", minLength=1, title="Reason", description_md=reason),
    }
