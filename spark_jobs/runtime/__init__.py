"""What surrounds a job: the session, the arguments, the report."""
