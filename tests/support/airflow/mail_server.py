"""A mail server in the test's process."""

from __future__ import annotations

import asyncore
import smtpd
import threading
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any


class MailServer(smtpd.SMTPServer):
    """A server that keeps all mails."""

    def __init__(self) -> None:
        self._sockets: dict[int, Any] = {}
        self.mails: list[EmailMessage] = []
        super().__init__(("127.0.0.1", 0), None, map=self._sockets)
        self.port: int = self.socket.getsockname()[1]
        self._thread = threading.Thread(target=asyncore.loop, kwargs={"timeout": 0.1, "map": self._sockets})

    def process_message(self, peer: Any, mailfrom: str, rcpttos: list[str], data: bytes, **_: Any) -> None:
        """Keep a mail."""
        self.mails.append(message_from_bytes(data, policy=default))

    def __enter__(self) -> MailServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncore.close_all(self._sockets)
        self._thread.join(30)
