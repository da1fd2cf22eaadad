"""The configuration of a stand-in for Phi-3.5-vision, loaded as code of a model's folder."""

from transformers import Phi3Config


class Phi3VConfig(Phi3Config):
    """A language model's configuration, with that of its image processor."""

    model_type = "phi3_v"
