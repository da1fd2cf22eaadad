"""Selection of the frames that a request shows. No selector sees labels, masks, reports or patients."""
