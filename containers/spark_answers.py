"""Whether the Spark Connect server of this container answers a client: `python -m containers.spark_answers`."""

from __future__ import annotations

import sys

from containers.spark_connect import PORT, TOKEN_FILE
from embedded.spark.probe import answers

if __name__ == "__main__":
    sys.exit(not answers(PORT, TOKEN_FILE.read_text()))
