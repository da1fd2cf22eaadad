"""The phantom as public sets give their hearts: the same pictures with each set's names and header traits."""
