"""Derive findings from segmentation masks (volumes, wall thickness, scar), with origin `mask`."""
