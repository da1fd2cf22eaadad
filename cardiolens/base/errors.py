"""The two kinds of failure a user can meet."""


class InputError(ValueError):
    """Input of the user that cannot be used.

    The message names the value, the legal set and the remedy; verbs print it alone, without a traceback,
    and exit with 2.
    """


class RunError(RuntimeError):
    """A run that could not be completed; the message names the cause and what to do, the exit code is 1."""
