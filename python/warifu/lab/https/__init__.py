# SPDX-License-Identifier: Apache-2.0 OR MIT
"""HTTPS: nginx, and a client on OpenSSL, over the emulated link."""
