"""One static page that ranks the models of several runs on one release."""
