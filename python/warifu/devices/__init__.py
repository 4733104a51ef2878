# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Device profiles from benchmarks: recognising their outputs, and scaling what they lack from other
devices.

- `recognise`: the output of a benchmark, of a tool that is found by its content (`formats`)
- `catalog`: the devices that there are, as their profiles say
- `scaling`: a figure from the nearest device, with a band; `judge`: how often the truth lies in it
- `profile`: a profile's text
"""
