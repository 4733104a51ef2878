# SPDX-License-Identifier: Apache-2.0 OR MIT
"""CoAP over UDP (RFC 7252): libcoap's server, and a client on libcoap, over the emulated link."""
