"""Configuration of a sweep as frozen, validated values."""
