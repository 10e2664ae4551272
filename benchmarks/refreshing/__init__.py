"""Gold tables that are refreshed: by the touched groups, and whole."""
