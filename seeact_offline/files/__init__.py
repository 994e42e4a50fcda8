"""Writing and reading of files. Text is redacted before it is written."""
