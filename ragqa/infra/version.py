"""The version of this package, which records, runs and requests name."""

__version__ = "0.2.0"
