"""Frame selection for requests. No selector sees labels, masks, reports or patients."""
