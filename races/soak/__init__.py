"""A soak: writers of every kind at one lakehouse, killed and stopped at any moment; then each row is looked for."""
