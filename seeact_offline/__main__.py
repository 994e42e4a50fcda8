"""`python -m seeact_offline VERB ...`: the command `seeact-offline`, by any interpreter that has the package."""

from seeact_offline.cli import main

raise SystemExit(main())
