"""Compile the inner loops of recording where there is a compiler; without one, Playhead is pure Python and slower."""

from __future__ import annotations

import os
import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_COMPILED = (
    "playhead/event/_speed",
    "playhead/capture/_hooks",
    "playhead/store/_forking",
    "playhead/ingest/otlp/_read",
)


class CompileSpeed(BuildHookInterface):
    """Build what is written in C beside its source, and ship it in the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or os.environ.get("PLAYHEAD_PURE") == "1":
            return
        try:
            self._compile()
        except (Exception, SystemExit) as problem:
            self.app.display_warning(f"Playhead is built without its compiled part: {problem}")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        build_data["artifacts"] += [f"src/{path}{suffix}" for path in _COMPILED]

    def _compile(self) -> None:
        from setuptools import Distribution, Extension
        from setuptools.command.build_ext import build_ext

        modules = [Extension(path.replace("/", "."), [f"src/{path}.c"]) for path in _COMPILED]
        distribution = Distribution({"ext_modules": modules})
        distribution.package_dir = {"": "src"}
        command = build_ext(distribution)
        command.inplace = True
        command.build_temp = os.path.join(self.root, "build", "speed")
        here = os.getcwd()
        os.chdir(self.root)
        try:
            command.ensure_finalized()
            command.run()
        finally:
            os.chdir(here)
