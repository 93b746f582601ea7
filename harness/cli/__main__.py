"""`python -m cutproof.harness.cli`, where no script was installed."""

from .entry import main

raise SystemExit(main())
