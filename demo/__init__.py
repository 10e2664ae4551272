"""The demo: a source system made of real flights, and the numbers that its tables are checked against."""
