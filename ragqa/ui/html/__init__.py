"""Values to HTML and charts. Pure; every value is escaped here."""
