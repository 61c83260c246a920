"""Answers on disk: the record, its stores, and how it is written while a question runs. Also cases and memos."""
