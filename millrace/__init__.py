"""Read the certified versions of a lakehouse: `from millrace import certified`.

This package only names what readers import; the code is in `include.reading`, everything else in its own folder.
"""

from include.reading.certified import CertifiedTable, certified
from include.reading.connection import connect

__all__ = ["CertifiedTable", "certified", "connect"]
