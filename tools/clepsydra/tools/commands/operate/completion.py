"""`clepsydra completion`: prints what makes a shell complete commands, flags and ids."""

import click
from click.shell_completion import get_completion_class

# click looks for this variable when the command is called by the shell for a completion.
VARIABLE = "_CLEPSYDRA_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    epilog="""\b
Examples:
  clepsydra completion bash >> ~/.bashrc
  clepsydra completion zsh >> ~/.zshrc
  clepsydra completion fish > ~/.config/fish/completions/clepsydra.fish

Ids are completed from the scheduler that CLEPSYDRA_SERVER names: those among its first thousand actions.""",
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell: commands, flags and ids."""
    complete = get_completion_class(shell)
    assert complete is not None, "click has all three"
    click.echo(complete(ctx.find_root().command, {}, "clepsydra", VARIABLE).source())
