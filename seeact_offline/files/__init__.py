"""How files are written and read. Text is redacted before it is written."""
