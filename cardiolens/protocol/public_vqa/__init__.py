"""Closed questions of public benchmarks on single pictures: VQA-RAD, SLAKE, OmniMedVQA."""
