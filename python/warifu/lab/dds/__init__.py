# SPDX-License-Identifier: Apache-2.0 OR MIT
"""DDS over the emulated link: two participants of Cyclone DDS, with DDS Security or without."""
