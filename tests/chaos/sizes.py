"""How large the tests of this folder are: short in `make test`, long with CHAOS=long in the environment."""

import os

IS_LONG = os.environ.get("CHAOS") == "long"

UPDATES = 10_000 if IS_LONG else 1_000
LEASES_OUTLIVED = 10 if IS_LONG else 4
