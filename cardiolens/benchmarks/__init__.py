"""Benchmarks of images and questions: one loader for all, and a map of columns for each."""
