# SPDX-License-Identifier: Apache-2.0 OR MIT
"""DDS Security: what a secured DDS system needs beside its programs."""
