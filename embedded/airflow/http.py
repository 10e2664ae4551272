"""Requests to Airflow's REST API: they log in, are retried if that is safe, and fail with Airflow's reason."""

from __future__ import annotations

from typing import Any, Self

import httpx
from tenacity import Retrying, retry_if_exception, retry_if_result, stop_after_delay, wait_exponential_jitter

from embedded.errors import StackError

TIMEOUT_S = 300
"""Seconds for one answer: on an overloaded machine a change of a run waits minutes for the scheduler."""
PATIENCE_S = 120
"""Seconds for which a request is retried: Airflow's server on a machine under full load may answer late."""
PAGE = 100
"""The items on a page of a list: Airflow's `[api] maximum_page_limit` silently makes a larger page of this size."""


class AirflowApiError(StackError):
    """Raised when Airflow refuses a request or does not answer; the message has its reason."""


def _is_safe_to_retry(error: BaseException) -> bool:
    """Whether a failed request certainly changed nothing."""
    return isinstance(error, httpx.ConnectError) or (
        isinstance(error, httpx.TransportError) and error.request.method == "GET"
    )


def _met_another_change(answer: httpx.Response) -> bool:
    """Whether Airflow undid a change, because the scheduler had made another one in the same instant."""
    # An answer to a question that somebody has answered is a conflict, too, and stays one. A deadlock, in which the
    # database lets one of both go on, is a "Database error" to Airflow.
    reasons: dict[int, str] = {
        httpx.codes.CONFLICT: "Unique constraint violation",
        httpx.codes.INTERNAL_SERVER_ERROR: "Database error",
    }
    reason = reasons.get(answer.status_code)
    return answer.request.method == "PATCH" and reason is not None and reason in answer.text


def _has_waiting_run(answer: httpx.Response) -> bool:
    """Whether an event has triggered a run that has not started: Airflow 3.3.2 cannot show such an event."""
    is_list = answer.request.method == "GET" and answer.request.url.path.endswith("/assets/events")
    return is_list and answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR


class AirflowHttp:
    """A connection to one Airflow, which logs in when necessary."""

    def __init__(self, url: str, user: str, password: str) -> None:
        self._credentials = {"username": user, "password": password}
        self._http = httpx.Client(base_url=url, timeout=TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._http.close()

    def get(self, path: str, **params: Any) -> Any:
        """Send a GET request and return the answer.

        Raises:
            AirflowApiError: Airflow refuses, or cannot be reached for PATIENCE_S.
        """
        return self.ask("GET", path, params=params)

    def get_all(self, path: str, key: str, **params: Any) -> list[Any]:
        """Return the items under `key` of all pages of a list.

        Raises:
            AirflowApiError: Airflow refuses, or cannot be reached for PATIENCE_S.
        """
        items: list[Any] = []
        total = 1
        while len(items) < total:
            page = self.get(path, limit=PAGE, offset=len(items), **params)
            items += page[key]
            total = page["total_entries"]
        return items

    def ask(self, method: str, path: str, **request: Any) -> Any:
        """Send a request and return the answer.

        Raises:
            AirflowApiError: Airflow refuses, or cannot be reached for PATIENCE_S.
        """
        answer = self._send(method, path, **request)
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            self._log_in()
            answer = self._send(method, path, **request)
        if answer.is_error:
            msg = f"Airflow refused {method} {path}: {answer.status_code} {answer.text[:500]}"
            raise AirflowApiError(msg)
        return answer.json() if answer.content else None

    def peek(self, path: str) -> Any:
        """Return the answer to a request without login; None while Airflow does not answer."""
        try:
            return self._http.get(path, timeout=5).raise_for_status().json()
        except (httpx.HTTPError, ValueError):
            return None

    def _send(self, method: str, path: str, **request: Any) -> httpx.Response:
        patiently = Retrying(
            retry=retry_if_exception(_is_safe_to_retry)
            | retry_if_result(_met_another_change)
            | retry_if_result(_has_waiting_run),
            stop=stop_after_delay(PATIENCE_S),
            wait=wait_exponential_jitter(multiplier=0.2, max=3),
            retry_error_callback=lambda last: last.outcome.result() if last.outcome else None,
        )
        try:
            return patiently(self._http.request, method, path, **request)
        except httpx.TransportError as error:
            msg = f"Airflow does not answer {method} {path} at {self._http.base_url}: {error!r}"
            raise AirflowApiError(msg) from error

    def _log_in(self) -> None:
        answer = self._send("POST", "/auth/token", json=self._credentials)
        if answer.is_error:
            msg = f"Airflow refused the log-in of {self._credentials['username']}: {answer.status_code}"
            raise AirflowApiError(msg)
        self._http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
