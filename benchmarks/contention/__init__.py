"""Writers of one table side by side: how often each commits, and what a commit costs."""
