"""Findings from segmentation masks: volumes, wall thickness and scar, as answers with origin `mask`."""
