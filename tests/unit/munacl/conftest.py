# SPDX-License-Identifier: Apache-2.0 OR MIT
"""munacl built as its users build it."""

from support.munacl_builds import answers, build, build_host, profile

__all__ = ["answers", "build", "build_host", "profile"]
