"""Where this clone of Millrace's repository is: for what is not installed with the packages, as tools and tests."""

from __future__ import annotations

from pathlib import Path

CLONE = Path(__file__).resolve().parents[1]
"""The folder of the clone."""
