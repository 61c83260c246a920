"""What every room may need and none owns: durable files, HTTP, caches, metrics, logs. It knows no stage."""
