"""Configuration: what a sweep is asked to do, as frozen values."""
