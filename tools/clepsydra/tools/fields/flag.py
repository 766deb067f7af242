"""A row of the flag table: one field of an action, as a flag of `add` and `update` and as a line of `get`."""

from typing import Any, NamedTuple

import click

from clepsydra.core.action.spec import DEFAULTS
from clepsydra.tools.fields.types import FieldType
from clepsydra.v1.action_pb2 import ScheduledAction

_DEFAULTS = ScheduledAction(spec=DEFAULTS)


class SpecFlag(NamedTuple):
    # "--start-deadline"
    name: str
    # "spec.start_deadline", as in an update mask.
    path: str
    type: FieldType
    description: str
    # How help calls the value, if not by its type.
    metavar: str | None = None
    # In a new action, this flag makes sense only together with that one.
    needs: str | None = None
    # The oneof of the API that this flag makes a choice in: only one flag for each may be given.
    one_of: str | None = None
    # How `get` calls the field, if not by the name of the flag.
    label: str | None = None
    # False: the line "recurrence" or "target" of `get` shows this field.
    has_own_line: bool = True

    @property
    def parameter(self) -> str:
        """The name of the command's argument for this flag."""
        return "spec_" + self.name.removeprefix("--").replace("-", "_")

    @property
    def help(self) -> str:
        default = self._show_if_set(_DEFAULTS)
        return self.description if default is None else f"{self.description} [default: {default}]"

    @property
    def title(self) -> str:
        """The name of the line that `get` prints."""
        return self.label or self.name.removeprefix("--").replace("-", " ")

    def is_given(self, value: Any) -> bool:
        """Whether the command line gives the flag, by the value that click passes."""
        return bool(value) if self.type.is_repeated or self.type.parameter is None else value is not None

    def write(self, action: ScheduledAction, value: Any) -> None:
        """Write the value from the command line to the field."""
        message, name = self._parent(action)
        # This sets the message even if the value is empty: a log target with an empty line is a log target.
        message.SetInParent()
        try:
            self.type.write(message, name, value)
        except (ValueError, TypeError) as error:
            raise click.BadParameter(f"the API cannot hold this value: {error}", param_hint=self.name) from error

    def show(self, action: ScheduledAction) -> str | None:
        """The field for people; None if it is not set or has its default."""
        text = self._show_if_set(action)
        return None if text == self._show_if_set(_DEFAULTS) else text

    def _show_if_set(self, action: ScheduledAction) -> str | None:
        message, name = self._parent(action)
        field = message.DESCRIPTOR.fields_by_name[name]
        is_set = message.HasField(name) if field.has_presence else getattr(message, name)
        return self.type.show(getattr(message, name)) if is_set else None

    def _parent(self, action: ScheduledAction) -> tuple[Any, str]:
        """The message that has the field, and the field's name."""
        *steps, name = self.path.split(".")
        message: Any = action
        for step in steps:
            message = getattr(message, step)
        return message, name
