"""The common case, planned cheaply: a handler is called once, everything else is left to the defaults.

Such a request is recognised by its fields and such an action by its bytes; what is stored is built from encoded parts,
without building, copying and encoding messages. Nothing is decided here: the results are the very bytes that the state
machine comes to, which `tests/unit/fastpath` shows. Whatever is not common, or is wrong, is answered with None, and
`lifecycle.py` plans it the general way. docs/decisions/0007 and 0008 say what this saves.
"""

from clepsydra.core.fastpath.attempts import plan_begins, plan_ends
from clepsydra.core.fastpath.creations import plan_creations

__all__ = ["plan_begins", "plan_creations", "plan_ends"]
