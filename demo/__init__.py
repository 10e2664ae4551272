"""The demo: a source system with real flights, and independent numbers to check its tables."""
