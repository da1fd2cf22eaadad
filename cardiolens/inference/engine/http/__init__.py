"""An engine behind HTTP: what may be sent where, how often, and at what price."""
