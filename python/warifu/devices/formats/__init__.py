# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The outputs of benchmarks, a tool a file. Each has `read(lines, clock_hz)`: the output, or None
where no line is the tool's."""
