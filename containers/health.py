"""Ask a service of docker-compose.yaml whether it works: `python -I health.py URL [PART]`.

The exit code is 0 if the answer is right. Docker asks every few seconds, so this file imports next to nothing:

    health.py http://localhost:8080/api/v2/monitor/health metadatabase   # a part of Airflow that reports its health
    health.py http://localhost:8081/json/                                # a page of Spark that answers
"""

from __future__ import annotations

import json
import sys
import urllib.request

TIMEOUT_S = 8


def problem(url: str, part: str = "") -> str:
    """Return what is wrong in one line; empty if the service is healthy.

    Args:
        url: the address of a JSON page.
        part: a part of Airflow in the answer of its health page; empty if any answer will do.
    """
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            found = json.load(answer)
    except (OSError, ValueError) as error:
        return f"{url}: {error}"
    if not part:
        return ""
    status = found.get(part, {}).get("status")
    return "" if status == "healthy" else f"{part} is {status or 'unknown'}"


if __name__ == "__main__":
    sys.exit(problem(*sys.argv[1:]) or 0)
