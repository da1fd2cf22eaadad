"""CardioLens: evaluation of multimodal language models on multi-sequence cardiac MRI."""

__version__ = "0.1.0"
