"""Which frames of a study a request shows. No selector sees labels, masks, reports or patients."""
