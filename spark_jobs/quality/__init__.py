"""Quality: row rules that refuse single rows, and suites that judge one exact table version."""
