"""What maintenance costs, and what it leaves."""
