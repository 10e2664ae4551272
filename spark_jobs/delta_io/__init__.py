"""The only place that speaks Delta: tables, batches, reads, merges, maintenance."""
