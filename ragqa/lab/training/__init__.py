"""Every model trained here."""
