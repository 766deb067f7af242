"""The port's named tuples made from plain ones, in less time than their constructors take.

For what is done with every action that is executed, or created with many others. A plain tuple must have all fields,
in their order.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from clepsydra.store.port import Action, Advance, Due, Put, Row

row_of: Callable[[tuple[Any, ...]], Row] = partial(tuple.__new__, Row)
action_of: Callable[[tuple[Any, ...]], Action] = partial(tuple.__new__, Action)
due_of: Callable[[tuple[Row, Action | None]], Due] = partial(tuple.__new__, Due)
advance_of: Callable[[tuple[Any, ...]], Advance] = partial(tuple.__new__, Advance)
put_of: Callable[[tuple[Any, ...]], Put] = partial(tuple.__new__, Put)
