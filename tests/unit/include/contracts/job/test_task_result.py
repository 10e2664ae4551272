"""What a task leaves for others: any text, but for what PostgreSQL's JSON cannot hold."""

from __future__ import annotations

import json

from hypothesis import given

from include.contracts.job.task_result import TaskResult
from include.errors import Outcome
from tests.support.texts import texts


@given(texts())
def test_any_message_can_be_kept_as_json_of_postgresql(message: str) -> None:
    kept = TaskResult(outcome=Outcome.COMMITTED, message=message).to_xcom()["message"]
    assert "\0" not in kept
    assert kept == message.replace("\0", "\u2400")
    assert json.loads(json.dumps(kept)) == kept
