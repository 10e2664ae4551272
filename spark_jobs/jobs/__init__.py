"""The entrypoints: one file a job, a screen each."""
