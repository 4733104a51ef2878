# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Ctrl-C in a command, past the parser, which would turn it into an exit code without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.core import TyperGroup

from warifu.cli.errors import Interrupted

if TYPE_CHECKING:
    from typer._click.core import Context


class Group(TyperGroup):
    """Commands whose Ctrl-C comes through (`TyperGroup.main` makes Exit(130) of it)."""

    def invoke(self, ctx: Context) -> object:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise Interrupted(str(interrupt)) from interrupt
