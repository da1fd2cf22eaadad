"""Task folders for lmms-eval, made where a release has arrived: a release itself holds no code."""
