"""What talks to the outside: the Spark driver that a task starts."""
