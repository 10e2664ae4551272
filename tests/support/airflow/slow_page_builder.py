"""A builder of Data Docs that says what it does, and does not end in time."""

from __future__ import annotations

import sys
import time

if __name__ == "__main__":
    sys.stderr.write("reads the results\n")
    sys.stderr.flush()
    time.sleep(60)
