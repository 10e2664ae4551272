"""The message about a cause, in the forms that mail, chat and pager need."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millrace.alerts.down_servers import Cause

_MOST_LINES = 20


@dataclass(frozen=True)
class Alert:
    """A message. A template of a notifier names its attributes: `{{ alert.title }}`.

    Attributes:
        key: names the cause, for a pager that groups messages.
        kind: the kind of trouble, such as `refused`; `several` for a message about several causes.
        table: the table; empty for several causes.
        domain: its domain.
        layer: its layer.
        owner: its owner.
        cause: what is wrong.
        action: what helps.
        way_out: what else helps.
        link: the address of its page.
        is_resolved: whether the causes are gone: the message says that nobody has to do anything any more.
    """

    key: str
    kind: str
    table: str
    domain: str
    layer: str
    owner: str
    cause: str
    action: str
    way_out: str
    link: str
    is_resolved: bool = False

    @property
    def event_action(self) -> str:
        """What a pager does with the message, in the words of PagerDuty: `trigger` or `resolve`."""
        return "resolve" if self.is_resolved else "trigger"

    @property
    def title(self) -> str:
        """The subject, in one line."""
        start = "Resolved: " if self.is_resolved else ""
        return " ".join(f"{start}{self.table or 'The lakehouse'}: {self.kind}".split())

    @property
    def text(self) -> str:
        """The message as plain text."""
        if self.is_resolved:
            return f"{self.title}\nNobody has to do anything any more. It was: {self.cause}\n{self.link}"
        lines = (f"{self.title}\n{self.cause}", self.action and f"What helps: {self.action}", self.way_out, self.link)
        return "\n".join(line for line in lines if line)

    @property
    def html(self) -> str:
        """The message as HTML, with every text escaped."""
        lines = (escape(line) for line in self.text.split("\n") if line != self.link)
        return "<br>\n".join((*lines, f'<a href="{escape(self.link)}">{escape(self.link)}</a>'))

    @property
    def mrkdwn(self) -> str:
        """The message for Slack: what it would take for a mention or a link is escaped."""
        text = self.text.removesuffix(self.link).rstrip()
        return f"{escape(text, quote=False)}\n<{escape(self.link, quote=False)}|Open the page>"


def alert_of(item: Cause, link: Callable[[str], str], all_tables: str) -> Alert:
    """Return the message about a cause.

    Args:
        item: the cause.
        link: returns the address of the page of a table.
        all_tables: the address of the page of all tables.
    """
    if item.table is None:
        return Alert(_digest([item]), item.kind, "", "", "", "", item.cause, "", item.way_out, all_tables)
    spec = item.table.spec
    return Alert(
        key=_digest([item]),
        kind=str(item.kind),
        table=spec.table,
        domain=spec.domain,
        layer=spec.layer,
        owner=spec.owner,
        cause=item.cause,
        action=item.action.value,
        way_out=item.way_out,
        link=link(spec.table),
    )


def digest_of(items: Sequence[Cause], link: str) -> Alert:
    """Return one message about many causes at once; it names the first of them."""
    lines = [_line(item) for item in items[:_MOST_LINES]]
    more = [f"and {len(items) - _MOST_LINES:,} more"] if len(items) > _MOST_LINES else []
    cause = "\n".join((f"{len(items):,} causes need a person:", *lines, *more))
    return Alert(_digest(items), "several", "", "", "", "", cause, "", "", link)


def _line(item: Cause) -> str:
    about = f"{item.table.table}: " if item.table else ""
    return f"{about}{item.kind}: {item.cause}"


def _digest(items: Sequence[Cause]) -> str:
    names = "\n".join(name for item in items for name in item.names)
    return hashlib.sha256(names.encode()).hexdigest()[:16]
