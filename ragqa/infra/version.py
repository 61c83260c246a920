"""The version of this package, which packaging, records, runs and requests name."""

__version__ = "0.3.0"
