"""flowstone runs workflow files durably: compile, freeze, run, journal, resume."""

__version__ = "0.1.0"
