# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What securing an IoT connection costs: predicted, measured, and how far apart the two are."""
