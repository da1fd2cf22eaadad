"""Configuration as frozen, validated values."""
