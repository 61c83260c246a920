"""Shared by all rooms and independent of the stages: durable files, HTTP, caches, metrics, logs."""
