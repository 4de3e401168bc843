"""Print the code by which a shell completes commands, options and runs."""

from __future__ import annotations

import argparse

from playhead.cli.output import Output

SHELLS = ("bash", "zsh", "fish")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("shell", choices=SHELLS, help="the shell to complete in")
    parser.epilog = (
        "examples:\n"
        '  eval "$(playhead completion bash)"                                      in ~/.bashrc\n'
        '  eval "$(playhead completion zsh)"                                       in ~/.zshrc\n'
        "  playhead completion fish > ~/.config/fish/completions/playhead.fish"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    from argcomplete.shell_integration import shellcode

    code = shellcode(["playhead"], shell=args.shell)
    if out.json:
        out.emit({"shell": args.shell, "code": code})
    else:
        out.print(code)
    return 0
