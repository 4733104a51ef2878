# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`python -m warifu.cli`, for where the `warifu` script is not on PATH."""

from warifu.cli import main

main()
