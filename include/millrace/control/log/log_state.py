"""What the actions in a log make of a table: its definition, its data files, and the numbers of its writers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from millrace.control.log.delta_log import Action

File = TypeVar("File")


class LogState(Generic[File]):
    """The state of a table after the commits up to a version.

    Attributes:
        version: the version; -1 for none.
        definition: the last `protocol` and the last `metaData` that were applied.
        files: name -> data file.
        removed: name of a removed data file -> the version that removed it, or a later one, and the action.
        keys: Delta's application id -> its last number.

    Args:
        file_of: returns a data file, of the action that adds it.
    """

    def __init__(self, file_of: Callable[[Action], File]) -> None:
        self._file_of = file_of
        self.version = -1
        self.definition: dict[str, Action] = {}
        self.files: dict[str, File] = {}
        self.removed: dict[str, tuple[int, Action]] = {}
        self.keys: dict[str, int] = {}

    def apply(self, version: int, actions: Sequence[Action]) -> None:
        """Apply the actions of the commit or the checkpoint of `version`; a file that it removes and adds stays."""
        for removed in (action["remove"] for action in actions if "remove" in action):
            self.files.pop(removed["path"], None)
            self.removed[removed["path"]] = version, removed
        for kind, content in (item for action in actions for item in action.items()):
            match kind:
                case "add":
                    self.removed.pop(content["path"], None)
                    self.files[content["path"]] = self._file_of(content)
                case "txn":
                    self.keys[content["appId"]] = content["version"]
                case "protocol" | "metaData":
                    self.definition[kind] = content
        self.version = version

    def after(self, version: int, actions: Sequence[Action]) -> LogState[File]:
        """Return the state after one more commit, without the files that were removed before it."""
        following = LogState(self._file_of)
        following.definition, following.files, following.keys = dict(self.definition), dict(self.files), dict(self.keys)
        following.apply(version, actions)
        return following
