"""``python -m races.soak.restoring TABLE TIME``: look at what a restore would change, then do exactly that."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys


def main(table: str, to: str) -> None:
    """Become the command that the dry run has shown; end as the dry run if it is refused."""
    asked = ["lakehouse", "repair", "restore", table, "--to", to, "--json"]
    dry_run = subprocess.run(asked, stdout=subprocess.PIPE, check=False)
    if dry_run.returncode:
        sys.exit(dry_run.returncode)
    [plan] = json.loads(dry_run.stdout)
    command = shlex.split(plan["command"])
    os.execvp(command[0], [*command, "--why", "a wrong delivery"])


if __name__ == "__main__":
    main(*sys.argv[1:])
