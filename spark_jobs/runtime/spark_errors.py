"""What an error of Spark says, without the stack traces of its JVM, which the driver's log has."""

from __future__ import annotations

import re

_CAUSE = re.compile(r"^(?:Caused by)?: [\w.$]+(?:: |$)", re.MULTILINE)
_TRACE = re.compile(r"^\s+at \S+\(|^JVM stacktrace:|^Driver stacktrace:", re.MULTILINE)


def cause_of(error: BaseException) -> str:
    r"""Return the text of an error's innermost cause: the errors around it only say that a task or a write has failed.

    >>> trace = "\n\nJVM stacktrace:\norg.apache.spark.SparkException\n\tat org.apache.spark.Task.run(Task.scala:147)"
    >>> cause_of(RuntimeError(f"[UNRESOLVED_COLUMN] There is no column x.{trace}"))
    '[UNRESOLVED_COLUMN] There is no column x.'
    >>> caused = "Caused by: org.apache.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.\n\tat a.B(C:1)"
    >>> cause_of(RuntimeError(f"[TASK_WRITE_FAILED] Task failed while writing rows to /lake.{trace}\n{caused}"))
    '[DIVIDE_BY_ZERO] Division by zero.'
    >>> cause_of(RuntimeError("An error occurred while calling o9.save\n: java.io.IOException: full\n\tat a.B(C:1)"))
    'full'
    >>> cause_of(KeyError())
    'KeyError'
    """
    innermost = _CAUSE.split(str(error))[-1]
    return _TRACE.split(innermost)[0].strip() or type(error).__name__
