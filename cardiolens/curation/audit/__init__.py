"""How often the rules misread the replies of a run, by a person who reads a sample of them."""
