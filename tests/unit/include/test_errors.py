"""Each typed error ends a job with an outcome and an exit code of its own."""

from __future__ import annotations

import inspect

from include import errors
from include.errors import ExitCode, MillraceError, Outcome

ENDINGS = {
    "MillraceError": (Outcome.FAILED, ExitCode.FAILED),
    "SpecError": (Outcome.BAD_SPEC, ExitCode.BAD_SPEC),
    "UnknownNameError": (Outcome.BAD_SPEC, ExitCode.WRONG_USAGE),
    "BadInputError": (Outcome.BAD_INPUT, ExitCode.BAD_INPUT),
    "MisfitError": (Outcome.BAD_INPUT, ExitCode.BAD_INPUT),
    "QueryError": (Outcome.FAILED, ExitCode.WRONG_USAGE),
    "OverrideError": (Outcome.BAD_INPUT, ExitCode.BAD_INPUT),
    "RestoreError": (Outcome.FAILED, ExitCode.FAILED),
    "NotReadyError": (Outcome.NOT_READY, ExitCode.NOT_READY),
    "NotDeliveredError": (Outcome.NOT_READY, ExitCode.NOT_READY),
    "StorageError": (Outcome.FAILED, ExitCode.FAILED),
    "ConflictError": (Outcome.CONFLICT, ExitCode.CONFLICT),
    "LeaseLostError": (Outcome.CONFLICT, ExitCode.CONFLICT),
    "GateFailedError": (Outcome.GATE_FAILED, ExitCode.GATE_FAILED),
    "SparkUnavailableError": (Outcome.SPARK_UNAVAILABLE, ExitCode.SPARK_UNAVAILABLE),
    "DiskFullError": (Outcome.DISK_FULL, ExitCode.DISK_FULL),
    "DeletesRefusedError": (Outcome.DELETES_REFUSED, ExitCode.DELETES_REFUSED),
    "TornLogError": (Outcome.INCONSISTENT, ExitCode.INCONSISTENT),
    "ConservationError": (Outcome.INCONSISTENT, ExitCode.INCONSISTENT),
}


def test_every_error_has_its_outcome_and_exit_code() -> None:
    found = {name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)}
    assert {name: (kind.outcome, kind.exit_code) for name, kind in found.items()} == ENDINGS
    assert all(issubclass(kind, MillraceError) for kind in found.values())


def test_no_two_exit_codes_are_the_same_and_only_ok_is_zero() -> None:
    assert len({int(code) for code in ExitCode}) == len(ExitCode.__members__)
    assert [code for code in ExitCode if code == 0] == [ExitCode.OK]
    assert all(0 <= code < 126 for code in ExitCode), "a shell uses the codes from 126 on for itself"
