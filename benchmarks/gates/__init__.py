"""The cost of gates in one warm session, on tables of different sizes."""
