"""What an error of Spark says, without the stack traces of its JVM, which the driver's log has."""

from __future__ import annotations

import re

_CAUSE = re.compile(r"^(?:Caused by)?: [\w.$]+(?:: |$)|\(TID \d+\) \([^()]*\): (?:[\w.$]+: )?", re.MULTILINE)
_TRACE = re.compile(r"^\s+at \S+\(|^JVM stacktrace:|^Driver stacktrace:", re.MULTILINE)


def cause_in(message: str) -> str:
    r"""Return the innermost cause in a message: the errors around it only say that a task or a write has failed.

    >>> trace = "\n\nJVM stacktrace:\norg.apache.spark.SparkException\n\tat org.apache.spark.Task.run(Task.scala:147)"
    >>> cause_in(f"[UNRESOLVED_COLUMN] There is no column x.{trace}")
    '[UNRESOLVED_COLUMN] There is no column x.'
    >>> caused = "Caused by: org.apache.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.\n\tat a.B(C:1)"
    >>> cause_in(f"[TASK_WRITE_FAILED] Task failed while writing rows to /lake.{trace}\n{caused}")
    '[DIVIDE_BY_ZERO] Division by zero.'
    >>> lost = "Lost task 0.0 in stage 3.0 (TID 4) (host executor driver): org.apache.SparkException: [TOO_LONG] 7.{}"
    >>> cause_in(f"Job aborted due to stage failure: Task 0 failed 1 times, most recent failure: {lost.format(trace)}")
    '[TOO_LONG] 7.'
    >>> cause_in("An error occurred while calling o9.save\n: java.io.IOException: full\n\tat a.B(C:1)")
    'full'
    """
    innermost = _CAUSE.split(message)[-1]
    return _TRACE.split(innermost)[0].strip()


def cause_of(error: BaseException) -> str:
    """Return the innermost cause in an error's message; its class if it has none.

    >>> cause_of(KeyError())
    'KeyError'
    """
    return cause_in(str(error)) or type(error).__name__
