"""Layouts of archives by name: which file is what, and what of a header holds (`conf/layout/*.yaml`)."""
