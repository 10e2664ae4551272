"""A soak: writers of every kind on one lakehouse, killed and stopped at any time; then every row is checked."""
