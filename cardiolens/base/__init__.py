"""What every package stands on: errors, digests, versions of stages, and reading what strangers made."""
