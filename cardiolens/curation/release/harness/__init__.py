"""Task folders for other harnesses, made where a release has arrived: a release itself holds no code."""
