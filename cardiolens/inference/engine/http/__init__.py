"""An engine behind HTTP, with control of what is sent where, how often, and at what cost."""
