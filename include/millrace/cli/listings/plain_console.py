"""A console that shows the control characters of a text: values of rows must not command the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from millrace.contracts.visible_text import visible


class PlainConsole(Console):
    """A console of rich that writes each control character of a text as an escape. Its own, for colours, stay."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a string as a text."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the parts of what is to be shown."""
        if isinstance(renderable, Text) and (plain := visible(renderable.plain)) != renderable.plain:
            renderable = Text(plain, renderable.style, overflow=renderable.overflow)
        return super().render(renderable, options)
