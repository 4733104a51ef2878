# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Min-entropy of sequences (NIST SP 800-90B), and of a chip's memory after power-up."""

from warifu.entropy.cells import Cells, estimate_cells
from warifu.entropy.estimators import ESTIMATORS, assess

__all__ = ["ESTIMATORS", "Cells", "assess", "estimate_cells"]
