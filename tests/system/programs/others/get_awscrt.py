# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Fetches / from this machine with the card's certificate; prints the status."""

import sys

from awscrt import http, io

module, pin, certificate, ca, port = sys.argv[1:]
loops = io.EventLoopGroup(1)
bootstrap = io.ClientBootstrap(loops, io.DefaultHostResolver(loops))
behaviour = io.Pkcs11Lib.InitializeFinalizeBehavior.STRICT
options = io.TlsContextOptions.create_client_with_mtls_pkcs11(
    pkcs11_lib=io.Pkcs11Lib(file=module, behavior=behaviour),
    user_pin=pin,
    token_label="warifu",
    private_key_label="client",
    cert_file_path=certificate,
)
options.override_default_trust_store_from_path(None, ca)
tls = io.ClientTlsContext(options).new_connection_options()
tls.set_server_name("localhost")
connection = http.HttpClientConnection.new(
    "localhost", int(port), bootstrap, tls_connection_options=tls
).result(20)
headers = http.HttpHeaders([("host", "localhost")])
stream = connection.request(http.HttpRequest("GET", "/", headers))
stream.activate()
print(stream.completion_future.result(20))
