"""People whom the keys of `subject_keys` identify: what is stored of them, its erasure as shown, and its proof.

No answer, error or log has a key.
"""

from __future__ import annotations
