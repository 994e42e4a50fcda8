"""One way to persist. What is written passes the redactor first."""
