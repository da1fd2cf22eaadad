"""Makers of stand-ins for sets of images and questions."""
