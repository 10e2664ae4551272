"""What each layer does within the commit protocol: plan, write, close."""
