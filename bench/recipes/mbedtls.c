/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Client and server of Mbed TLS over memory, message by message: see probe.h.
 *
 * usage: mbedtls PKI_FOLDER TLS SESSION AUTHENTICATION GROUP AEAD CERTIFICATE RESPONSE_BYTES ROUNDS
 * A handshake step of the library handles the message after which its state is named. */
#define MBEDTLS_ALLOW_PRIVATE_ACCESS
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "mbedtls/ssl.h"
#include "mbedtls/ssl_ticket.h"
#include "probe.h"
#include "psa/crypto.h"
#include "ssl_misc.h"

struct pipe {
    unsigned char data[1 << 16];
    size_t from, to, taken;
};

struct end {
    const char *role;
    mbedtls_ssl_config config;
    mbedtls_ssl_context ssl;
    mbedtls_x509_crt own, root;
    mbedtls_pk_context key;
    struct pipe in;
    struct end *peer;
};

static int tls12, mutual, early;
static const char *session;
static unsigned char record[16384];

static void fail(const char *what, int code)
{
    if (code >= 0)
        return;
    fprintf(stderr, "mbedtls: %s: -0x%x\n", what, (unsigned)-code);
    exit(1);
}

psa_status_t mbedtls_psa_external_get_random(mbedtls_psa_external_random_context_t *context,
                                             uint8_t *to, size_t bytes, size_t *given)
{
    (void)context;
    *given = bytes;
    return getrandom(to, bytes, 0) == (ssize_t)bytes ? PSA_SUCCESS : PSA_ERROR_HARDWARE_FAILURE;
}

static int random_bytes(void *context, unsigned char *to, size_t bytes)
{
    (void)context;
    return psa_generate_random(to, bytes) == PSA_SUCCESS ? 0 : -1;
}

static int pipe_send(void *context, const unsigned char *from, size_t bytes)
{
    struct pipe *pipe = &((struct end *)context)->peer->in;
    memcpy(pipe->data + pipe->to, from, bytes);
    pipe->to += bytes;
    return (int)bytes;
}

static int pipe_receive(void *context, unsigned char *to, size_t bytes)
{
    struct pipe *pipe = &((struct end *)context)->in;
    size_t there = pipe->to - pipe->from;
    if (there == 0)
        return MBEDTLS_ERR_SSL_WANT_READ;
    if (bytes > there)
        bytes = there;
    memcpy(to, pipe->data + pipe->from, bytes);
    pipe->from += bytes;
    pipe->taken += bytes;
    if (pipe->from == pipe->to)
        pipe->from = pipe->to = 0;
    return (int)bytes;
}

static const char *message(const struct end *end)
{
    int client = end->role[0] == 'c';
#define SENT(name) (client ? "send " name : "receive " name)
#define GIVEN(name) (client ? "receive " name : "send " name)
    switch (end->ssl.state) {
    case MBEDTLS_SSL_CLIENT_HELLO: return SENT("ClientHello");
    case MBEDTLS_SSL_SERVER_HELLO: return GIVEN("ServerHello");
    case MBEDTLS_SSL_ENCRYPTED_EXTENSIONS: return GIVEN("EncryptedExtensions");
    case MBEDTLS_SSL_CERTIFICATE_REQUEST:
        /* Whether one is asked for, the client learns by reading the next message. */
        if (mutual)
            return GIVEN("CertificateRequest");
        return tls12 ? GIVEN("ServerHelloDone") : GIVEN("Certificate");
    case MBEDTLS_SSL_SERVER_CERTIFICATE: return GIVEN("Certificate");
    case MBEDTLS_SSL_SERVER_KEY_EXCHANGE: return GIVEN("ServerKeyExchange");
    case MBEDTLS_SSL_SERVER_HELLO_DONE: return GIVEN("ServerHelloDone");
    case MBEDTLS_SSL_CLIENT_KEY_EXCHANGE: return SENT("ClientKeyExchange");
    case MBEDTLS_SSL_CERTIFICATE_VERIFY:
        return tls12 ? mutual ? SENT("CertificateVerify") : "-" : GIVEN("CertificateVerify");
    case MBEDTLS_SSL_CLIENT_CERTIFICATE_VERIFY: return mutual ? SENT("CertificateVerify") : "-";
    case MBEDTLS_SSL_CLIENT_CERTIFICATE: return mutual ? SENT("Certificate") : "-";
    case MBEDTLS_SSL_CLIENT_CHANGE_CIPHER_SPEC: return SENT("ChangeCipherSpec");
    case MBEDTLS_SSL_SERVER_CHANGE_CIPHER_SPEC: /* a server sends its ticket from this state */
        return !client && end->ssl.handshake->new_session_ticket ? "send NewSessionTicket"
                                                                 : GIVEN("ChangeCipherSpec");
    case MBEDTLS_SSL_END_OF_EARLY_DATA: return SENT("EndOfEarlyData");
    case MBEDTLS_SSL_CLIENT_FINISHED: return SENT("Finished");
    case MBEDTLS_SSL_SERVER_FINISHED: return GIVEN("Finished");
    case MBEDTLS_SSL_NEW_SESSION_TICKET:
    case MBEDTLS_SSL_TLS1_3_NEW_SESSION_TICKET: return GIVEN("NewSessionTicket");
    /* The library turns to what follows: part of the last message. */
    default: return "+";
    }
}

/* Ends the work for a message, of which an end that receives took `taken` bytes, record headers and
 * tags included. "+" is part of this end's last message. */
static void border(struct end *end, const char *what)
{
    recipes_border(end->role, what, end->in.taken);
    end->in.taken = 0;
}

static int step(struct end *end)
{
    const char *what = message(end);
    recipes_border("-", "", 0);
    int result = mbedtls_ssl_handshake_step(&end->ssl);
    if (result == MBEDTLS_ERR_SSL_RECEIVED_EARLY_DATA)
        what = "receive ApplicationData";
    border(end, end->in.taken != 0 || what[0] != 'r' ? what : "+");
    return result;
}

static void configure(struct end *end, const char *role, const char *pki, int suite, int group)
{
    static int suites[2];
    static uint16_t groups[3];
    static mbedtls_ssl_ticket_context tickets;
    char path[512];
    int server = strcmp(role, "server") == 0;
    end->role = role;
    mbedtls_ssl_config_init(&end->config);
    mbedtls_x509_crt_init(&end->own);
    mbedtls_x509_crt_init(&end->root);
    mbedtls_pk_init(&end->key);
    fail("the configuration", mbedtls_ssl_config_defaults(&end->config, server,
        MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT));
    mbedtls_ssl_conf_rng(&end->config, random_bytes, NULL);
    suites[0] = suite;
    mbedtls_ssl_conf_ciphersuites(&end->config, suites);
    groups[0] = (uint16_t)group;
    groups[1] = tls12 && group != MBEDTLS_SSL_IANA_TLS_GROUP_SECP256R1
                    ? MBEDTLS_SSL_IANA_TLS_GROUP_SECP256R1 : 0;
    mbedtls_ssl_conf_groups(&end->config, groups);
    mbedtls_ssl_protocol_version version = tls12 ? MBEDTLS_SSL_VERSION_TLS1_2
                                                 : MBEDTLS_SSL_VERSION_TLS1_3;
    mbedtls_ssl_conf_min_tls_version(&end->config, version);
    mbedtls_ssl_conf_max_tls_version(&end->config, version);
    mbedtls_ssl_conf_authmode(&end->config, !server || mutual ? MBEDTLS_SSL_VERIFY_REQUIRED
                                                              : MBEDTLS_SSL_VERIFY_NONE);
    snprintf(path, sizeof path, "%s/root.pem", pki);
    fail(path, mbedtls_x509_crt_parse_file(&end->root, path));
    mbedtls_ssl_conf_ca_chain(&end->config, &end->root, NULL);
    if (server || mutual) {
        snprintf(path, sizeof path, "%s/%s-chain.pem", pki, role);
        fail(path, mbedtls_x509_crt_parse_file(&end->own, path));
        snprintf(path, sizeof path, "%s/%s.key", pki, role);
        fail(path, mbedtls_pk_parse_keyfile(&end->key, path, NULL, random_bytes, NULL));
        fail("the key", mbedtls_ssl_conf_own_cert(&end->config, &end->own, &end->key));
    }
    if (server) {
        mbedtls_ssl_ticket_init(&tickets);
        fail("tickets", mbedtls_ssl_ticket_setup(&tickets, random_bytes, NULL,
            MBEDTLS_CIPHER_AES_256_GCM, 86400));
        mbedtls_ssl_conf_session_tickets_cb(&end->config, mbedtls_ssl_ticket_write,
            mbedtls_ssl_ticket_parse, &tickets);
    } else {
        mbedtls_ssl_conf_tls13_enable_signal_new_session_tickets(&end->config, 1);
    }
    mbedtls_ssl_conf_early_data(&end->config, early);
}

static void open_end(struct end *end, struct end *peer)
{
    end->peer = peer;
    end->in.from = end->in.to = end->in.taken = 0;
    mbedtls_ssl_init(&end->ssl);
    fail("mbedtls_ssl_setup", mbedtls_ssl_setup(&end->ssl, &end->config));
    mbedtls_ssl_set_bio(&end->ssl, end, pipe_send, pipe_receive, NULL);
    if (end->role[0] == 'c')
        fail("the name", mbedtls_ssl_set_hostname(&end->ssl, "warifu.test"));
}

static void send_data(struct end *from, struct end *to, size_t bytes)
{
    recipes_border("-", "", 0);
    fail("a record", mbedtls_ssl_write(&from->ssl, record, bytes));
    border(from, "send ApplicationData");
    size_t taken = 0;
    recipes_border("-", "", 0);
    while (taken < bytes) {
        int result = mbedtls_ssl_read(&to->ssl, record, sizeof record);
        if (result == MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET) {
            border(to, "receive NewSessionTicket");
            continue;
        }
        if (result == MBEDTLS_ERR_SSL_WANT_READ) /* A ticket, whose end is told by the next call. */
            continue;
        fail("the data", result);
        border(to, "receive ApplicationData");
        taken += result > 0 ? (size_t)result : 0;
    }
}

/* One connection; the client's session is kept. */
static void connect_both(struct end *client, struct end *server, size_t response,
                         mbedtls_ssl_session *resume, mbedtls_ssl_session *keep)
{
    static const char request[] =
        "GET / HTTP/1.1\r\nHost: warifu.test\r\nConnection: close\r\n\r\n";
    open_end(client, server);
    open_end(server, client);
    if (resume != NULL)
        fail("the session", mbedtls_ssl_set_session(&client->ssl, resume));
    int in_early = early && resume != NULL;
    while (client->ssl.state != MBEDTLS_SSL_HANDSHAKE_OVER ||
           server->ssl.state != MBEDTLS_SSL_HANDSHAKE_OVER) {
        struct end *ends[] = {client, server};
        for (int i = 0; i < 2; i++) {
            struct end *end = ends[i];
            int result = 0;
            while (end->ssl.state != MBEDTLS_SSL_HANDSHAKE_OVER && result == 0) {
                result = step(end);
                if (in_early && end == client && end->ssl.state == MBEDTLS_SSL_SERVER_HELLO) {
                    recipes_border("-", "", 0);
                    fail("early data", mbedtls_ssl_write_early_data(&end->ssl,
                        (const unsigned char *)request, sizeof request - 1));
                    border(end, "send ApplicationData");
                    in_early = 0;
                }
                if (result == MBEDTLS_ERR_SSL_RECEIVED_EARLY_DATA) {
                    recipes_border("-", "", 0);
                    fail("early data", mbedtls_ssl_read_early_data(&end->ssl, record,
                        sizeof record));
                    border(end, "+");
                    result = 0;
                }
            }
            if (result != MBEDTLS_ERR_SSL_WANT_READ)
                fail("the handshake", result);
        }
    }
    if (!(early && resume != NULL))
        send_data(client, server, sizeof request - 1);
    send_data(server, client, response);
    recipes_border("-", "", 0);
    if (keep != NULL)
        fail("the session", mbedtls_ssl_get_session(&client->ssl, keep));
    mbedtls_ssl_free(&client->ssl);
    mbedtls_ssl_free(&server->ssl);
}

int main(int count, char **words)
{
    if (count != 10) {
        fprintf(stderr, "usage: see bench/recipes/mbedtls.c\n");
        return 2;
    }
    static struct end client, server;
    const char *aead = words[6];
    int rsa = strncmp(words[7], "rsa", 3) == 0, suite;
    tls12 = recipes_tls12 = strcmp(words[2], "1.2") == 0;
    session = words[3];
    mutual = strcmp(words[4], "mutual") == 0;
    early = strcmp(session, "0-rtt") == 0;
    int group = strcmp(words[5], "x25519") == 0 ? MBEDTLS_SSL_IANA_TLS_GROUP_X25519
                                                : MBEDTLS_SSL_IANA_TLS_GROUP_SECP256R1;
    if (strcmp(aead, "AES_128_GCM") == 0)
        suite = !tls12 ? MBEDTLS_TLS1_3_AES_128_GCM_SHA256
                : rsa  ? MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
                       : MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256;
    else if (strcmp(aead, "AES_256_GCM") == 0)
        suite = !tls12 ? MBEDTLS_TLS1_3_AES_256_GCM_SHA384
                : rsa  ? MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
                       : MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384;
    else
        suite = !tls12 ? MBEDTLS_TLS1_3_CHACHA20_POLY1305_SHA256
                : rsa  ? MBEDTLS_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
                       : MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256;
    if (psa_crypto_init() != PSA_SUCCESS)
        fail("psa_crypto_init", -1);
    configure(&client, "client", words[1], suite, group);
    configure(&server, "server", words[1], suite, group);
    size_t response = (size_t)atol(words[8]);
    mbedtls_ssl_session kept;
    mbedtls_ssl_session_init(&kept);
    connect_both(&client, &server, response, NULL, &kept);
    int resumed = strcmp(session, "full") != 0;
    if (strcmp(session, "psk_ke") == 0)
        mbedtls_ssl_conf_tls13_key_exchange_modes(&client.config,
            MBEDTLS_SSL_TLS1_3_KEY_EXCHANGE_MODE_PSK);
    if (resumed) /* what is made once is made */
        connect_both(&client, &server, response, &kept, NULL);
    recipes_begin();
    for (int round = 0; round < atoi(words[9]); round++) {
        recipes_border("=", "", 0);
        connect_both(&client, &server, response, resumed ? &kept : NULL, NULL);
    }
    return 0;
}
