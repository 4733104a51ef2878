# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What several files of tests share: made-up data, and real programs started and ended."""
