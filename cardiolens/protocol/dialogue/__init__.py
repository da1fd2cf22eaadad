"""Requests of several turns: chains, frames that a model asks for, what it has seen so far."""
