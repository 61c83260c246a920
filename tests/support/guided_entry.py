"""The process that atheris fuzzes in: ragqa is imported so that it says which of its lines an input reaches."""

import atheris

with atheris.instrument_imports(include=["ragqa"]):
    from tests.benchmarks import fuzz

fuzz.main()
