"""The commands, one module each: words in, exit code out. `python -m cardiolens.<command>` runs one."""
