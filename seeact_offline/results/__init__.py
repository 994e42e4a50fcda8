"""From finished run folders: scored and read again, verified, compared, listed, and
what a run would take, estimated."""
