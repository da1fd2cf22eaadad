"""What every package stands on: errors, digests, provenance, and reading what strangers made."""
