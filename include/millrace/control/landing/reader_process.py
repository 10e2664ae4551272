"""A process that reads files whose content decides what that costs: within limits of memory and computing time.

A few bytes of Avro may state more values than any memory holds, and some damaged files end the process that reads them.
"""

from __future__ import annotations

import atexit
import math
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import IO, Any, NamedTuple, TypeVar

import psutil

from millrace.contracts.spec.bronze_sources import FileLimits
from millrace.control.storage.s3_access import Environment, access_of_block, store_access
from millrace.errors import NotReadyError

_BYTES_PER_TIME = 64 << 20
_PATIENCE_S = 10
_READY = b"ready"
"""What the process writes once it can take calls."""
_OF_PROCESS = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Settings by which the process reserves no memory beyond what it uses."""

R = TypeVar("R")


class _Task(NamedTuple):
    """A call in an environment, with the most memory, in bytes, and computing time, in seconds, that it may take."""

    call: Callable[[], Any]
    environment: dict[str, str]
    access: Environment | None
    memory: int
    seconds: int


class _ReaderProcess:
    """A process that executes calls one after the other; another one takes its place if it ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._started_by: int | None = None

    def call(self, task: _Task) -> tuple[bool, Any] | int:
        """Return (whether it returned, what it returned or raised), or the status with which the process ended."""
        with self._lock:
            process = self._running()
            try:
                pickle.dump(task, self._stream(process.stdin))
                self._stream(process.stdin).flush()
                answer: tuple[bool, Any] = pickle.load(self._stream(process.stdout))
            except (EOFError, BrokenPipeError):
                self._process = None
                try:
                    return process.wait(_PATIENCE_S)
                except subprocess.TimeoutExpired:  # a thread of a library keeps it
                    process.kill()
                    return abs(process.wait())
            except BaseException:  # the answer would be that of the next call
                self.end()
                raise
            if isinstance(answer[1], MemoryError):
                self.end()
            return answer

    def end(self) -> None:
        """End the process."""
        if self._process and self._started_by == os.getpid():
            self._process.kill()
            self._process.wait()
        self._process = None

    def _running(self) -> subprocess.Popen[bytes]:
        """Return the process: a new one if it has ended, or in a fork."""
        if self._process is None or self._started_by != os.getpid() or self._process.poll() is not None:
            self.end()
            path = os.pathsep.join(filter(None, sys.path))
            command = [sys.executable, "-P", "-m", __name__]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **_OF_PROCESS, "PYTHONPATH": path},
            )
            self._started_by = os.getpid()
            if self._stream(self._process.stdout).read(len(_READY)) != _READY:
                status, self._process = self._process.wait(), None
                raise NotReadyError(
                    f"the process that reads landing files does not start: {_ending(status)}",
                    "Its lines above say why; no file is to blame.",
                )
        return self._process

    @staticmethod
    def _stream(stream: IO[bytes] | None) -> IO[bytes]:
        if stream is None:
            raise EOFError
        return stream


_READER = _ReaderProcess()
atexit.register(_READER.end)


def read_apart(read: Callable[[], R], size: int, limits: FileLimits) -> R:
    """Return what `read`, which pickle can copy, returns for a file of this size, in bytes; it runs in another process.

    Raises:
        ValueError: the file is over the limits, or ended the process.
        NotReadyError: somebody else has ended the process, or it does not start.
        Exception: what `read` raises.
    """
    seconds = math.ceil(limits.time.total_seconds()) * max(1, math.ceil(size / _BYTES_PER_TIME))
    task = _Task(read, {**os.environ, **_OF_PROCESS}, access_of_block(), limits.memory, seconds)
    answer = _READER.call(task)
    if answer == -signal.SIGKILL:  # the machine may have had no memory left for whatever took it
        answer = _READER.call(task)
    if not isinstance(answer, int):
        is_returned, result = answer
        if is_returned:
            return result  # type: ignore[no-any-return]
        if not isinstance(result, MemoryError):
            raise result
        raise limits.over("memory", f"it takes more memory to read its {size} bytes")
    if -answer == signal.SIGXCPU:
        raise limits.over("time", f"it takes more than {seconds} seconds to read its {size} bytes")
    if -answer in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        cause = f"somebody has ended the process that reads landing files ({_ending(answer)})"
        raise NotReadyError(cause, "Run it again; no file is to blame.")
    raise ValueError(f"its content ended the process that read it ({_ending(answer)}); have it delivered again")


def _ending(status: int) -> str:
    return signal.Signals(-status).name if status < 0 else f"exit code {status}"


def _serve() -> None:
    """Execute the calls of the process that started this one, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the other one
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers.write(_READY)
    answers.flush()
    most, of_self = resource.getrlimit(resource.RLIMIT_DATA)[1], psutil.Process()
    while True:
        try:
            task: _Task = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        os.environ.clear()
        os.environ.update(task.environment)
        # What earlier calls have freed is not always given back. Only Linux has a limit for all memory of a process.
        before = getattr(of_self.memory_info(), "data", None)
        if before is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (before + task.memory, most))
        end = math.ceil(time.process_time()) + task.seconds
        resource.setrlimit(resource.RLIMIT_CPU, (end, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        try:
            with store_access(dict(task.access)) if task.access is not None else nullcontext():
                answer = True, task.call()
        except Exception as error:  # noqa: BLE001  the other process raises it
            answer = False, error
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        answers.write(_copied(answer))
        answers.flush()
        del task, answer  # what they hold is memory of the next call


def _copied(answer: tuple[bool, Any]) -> bytes:
    """Return an answer as pickle copies it; of an error that it cannot copy, its type and its text."""
    try:
        copied = pickle.dumps(answer)
        pickle.loads(copied)
    except Exception:  # noqa: BLE001  each type decides what copying it raises
        return pickle.dumps((False, RuntimeError(f"{type(answer[1]).__name__}: {answer[1]}")))
    return copied


if __name__ == "__main__":
    _serve()
