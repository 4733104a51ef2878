/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Client and server of wolfSSL over memory, message by message: see probe.h.
 *
 * usage: wolfssl PKI_FOLDER TLS SESSION AUTHENTICATION GROUP AEAD CERTIFICATE RESPONSE_BYTES ROUNDS
 * wolfSSL sends each message in a record of its own; the work until it is written makes it. What
 * came is processed when ProcessReply, which the linker wraps, returns. */
#include <wolfssl/options.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wolfssl/ssl.h>

#include "probe.h"

struct record {
    unsigned char data[20000];
    int bytes, taken;
    const char *name;
};

struct end {
    const char *role;
    WOLFSSL_CTX *context;
    WOLFSSL *ssl;
    struct end *peer;
    struct record in[64];
    int first, count;
    const char *const *next; /* of the names of its encrypted messages */
    const char *receiving;
    int received, ciphered, sends_data;
};

static const char *const of_server[] = {"EncryptedExtensions", "Certificate", "CertificateVerify",
                                        "Finished", NULL};
static const char *const of_server_mutual[] = {"EncryptedExtensions", "CertificateRequest",
                                               "Certificate", "CertificateVerify", "Finished",
                                               NULL};
static const char *const of_server_resumed[] = {"EncryptedExtensions", "Finished", NULL};
static const char *const of_client[] = {"Finished", NULL};
static const char *const of_client_early[] = {"EndOfEarlyData", "Finished", NULL};
static const char *const of_client_mutual[] = {"Certificate", "CertificateVerify", "Finished",
                                               NULL};

static int tls12, mutual, early;

static void fail(const char *what, int failed)
{
    if (!failed)
        return;
    fprintf(stderr, "wolfssl: %s\n", what);
    exit(1);
}

static const char *name_of(struct end *end, const unsigned char *record)
{
    if (record[0] == 20) {
        end->ciphered = tls12;
        return "ChangeCipherSpec";
    }
    if (record[0] == 21)
        return "Alert";
    if (end->sends_data)
        return "ApplicationData";
    if (record[0] == 22 && end->ciphered)
        return "Finished";
    if (record[0] == 22)
        switch (record[5]) {
        case 1: return "ClientHello";
        case 2: return "ServerHello";
        case 4: return "NewSessionTicket";
        case 11: return "Certificate";
        case 12: return "ServerKeyExchange";
        case 13: return "CertificateRequest";
        case 14: return "ServerHelloDone";
        case 15: return "CertificateVerify";
        case 16: return "ClientKeyExchange";
        default: return "Unknown";
        }
    return *end->next != NULL ? *end->next++ : "NewSessionTicket";
}

static void border(struct end *end, const char *verb, const char *name, int bytes)
{
    char label[64];
    snprintf(label, sizeof label, "%s%s%s", verb, name[0] != 0 ? " " : "", name);
    recipes_border(end->role, label, (size_t)bytes);
}

static void received(struct end *end)
{
    if (end->receiving != NULL)
        border(end, "receive", end->receiving, end->received);
    end->receiving = NULL;
    end->received = 0;
}

static int on_send(WOLFSSL *ssl, char *data, int bytes, void *context)
{
    struct end *end = context;
    (void)ssl;
    received(end);
    for (int at = 0; at + 5 <= bytes;) {
        int length = 5 + ((unsigned char)data[at + 3] << 8 | (unsigned char)data[at + 4]);
        struct record *record = &end->peer->in[end->peer->count++ % 64];
        memcpy(record->data, data + at, (size_t)length);
        record->bytes = length;
        record->taken = 0;
        record->name = name_of(end, record->data);
        border(end, "send", record->name, 0);
        at += length;
    }
    return bytes;
}

static int on_receive(WOLFSSL *ssl, char *to, int bytes, void *context)
{
    struct end *end = context;
    (void)ssl;
    if (end->first == end->count)
        return WOLFSSL_CBIO_ERR_WANT_READ;
    struct record *record = &end->in[end->first % 64];
    if (record->taken == 0) {
        received(end);
        end->receiving = record->name;
        end->received = record->bytes;
    }
    int there = record->bytes - record->taken;
    if (bytes > there)
        bytes = there;
    memcpy(to, record->data + record->taken, (size_t)bytes);
    record->taken += bytes;
    if (record->taken == record->bytes)
        end->first++;
    return bytes;
}

static struct end client, server;

int __real_ProcessReply(WOLFSSL *ssl);
int __wrap_ProcessReply(WOLFSSL *ssl);
int __wrap_ProcessReply(WOLFSSL *ssl)
{
    struct end *end = ssl == client.ssl ? &client : &server;
    int result = __real_ProcessReply(ssl);
    received(end);
    return result;
}

static void configure(struct end *end, const char *role, const char *pki, const char *suite)
{
    char path[512];
    int is_server = role[0] == 's';
    end->role = role;
    end->context = wolfSSL_CTX_new(
        is_server ? tls12 ? wolfTLSv1_2_server_method() : wolfTLSv1_3_server_method()
                  : tls12 ? wolfTLSv1_2_client_method() : wolfTLSv1_3_client_method());
    fail("a context", end->context == NULL);
    fail(suite, wolfSSL_CTX_set_cipher_list(end->context, suite) != WOLFSSL_SUCCESS);
    snprintf(path, sizeof path, "%s/root.pem", pki);
    fail(path, wolfSSL_CTX_load_verify_locations(end->context, path, NULL) != WOLFSSL_SUCCESS);
    if (is_server || mutual) {
        snprintf(path, sizeof path, "%s/%s-chain.pem", pki, role);
        fail(path, wolfSSL_CTX_use_certificate_chain_file(end->context, path) != WOLFSSL_SUCCESS);
        snprintf(path, sizeof path, "%s/%s.key", pki, role);
        fail(path, wolfSSL_CTX_use_PrivateKey_file(end->context, path, WOLFSSL_FILETYPE_PEM) !=
                       WOLFSSL_SUCCESS);
    }
    wolfSSL_CTX_set_verify(end->context, !is_server ? WOLFSSL_VERIFY_PEER
        : mutual ? WOLFSSL_VERIFY_PEER | WOLFSSL_VERIFY_FAIL_IF_NO_PEER_CERT
                 : WOLFSSL_VERIFY_NONE, NULL);
    wolfSSL_CTX_SetIORecv(end->context, on_receive);
    wolfSSL_CTX_SetIOSend(end->context, on_send);
    wolfSSL_CTX_UseSessionTicket(end->context);
    if (early && is_server)
        wolfSSL_CTX_set_max_early_data(end->context, 16384);
}

static void open_end(struct end *end, struct end *peer, int group)
{
    end->peer = peer;
    end->first = end->count = end->received = end->ciphered = end->sends_data = 0;
    end->receiving = NULL;
    end->ssl = wolfSSL_new(end->context);
    fail("wolfSSL_new", end->ssl == NULL);
    wolfSSL_SetIOReadCtx(end->ssl, end);
    wolfSSL_SetIOWriteCtx(end->ssl, end);
    if (!tls12) {
        int groups[] = {group};
        fail("the group", wolfSSL_set_groups(end->ssl, groups, 1) != WOLFSSL_SUCCESS);
    } else {
        fail("the group", wolfSSL_UseSupportedCurve(end->ssl, (word16)group) != WOLFSSL_SUCCESS);
        if (group != WOLFSSL_ECC_SECP256R1)
            wolfSSL_UseSupportedCurve(end->ssl, WOLFSSL_ECC_SECP256R1);
    }
}

static int waits(struct end *end, int result)
{
    int error = wolfSSL_get_error(end->ssl, result);
    if (result == WOLFSSL_SUCCESS || result > 0)
        return 0;
    if (error == WOLFSSL_ERROR_WANT_READ)
        return 1;
    char text[80];
    fprintf(stderr, "wolfssl: %s: %s\n", end->role, wolfSSL_ERR_error_string((unsigned long)error, text));
    exit(1);
}

static void send_data(struct end *from, struct end *to, int bytes)
{
    static unsigned char data[16384];
    recipes_border("-", "", 0);
    from->sends_data = 1;
    fail("a record", wolfSSL_write(from->ssl, data, bytes) != bytes);
    recipes_border("-", "", 0);
    for (int taken = 0; taken < bytes;) {
        int result = wolfSSL_read(to->ssl, data, sizeof data);
        received(to);
        fail("the data", result <= 0 && waits(to, result) && to->first == to->count);
        taken += result > 0 ? result : 0;
    }
    from->sends_data = 0;
}

/* One connection; the client's session is kept. */
static void connect_both(int group, int response, WOLFSSL_SESSION *resume, int psk_alone,
                         WOLFSSL_SESSION **keep)
{
    static const char request[] =
        "GET / HTTP/1.1\r\nHost: warifu.test\r\nConnection: close\r\n\r\n";
    open_end(&client, &server, group);
    open_end(&server, &client, group);
    client.next = resume != NULL ? early ? of_client_early : of_client
                  : mutual       ? of_client_mutual
                                 : of_client;
    server.next = resume != NULL ? of_server_resumed : mutual ? of_server_mutual : of_server;
    if (resume != NULL)
        fail("the session", wolfSSL_set_session(client.ssl, resume) != WOLFSSL_SUCCESS);
    if (psk_alone) {
        wolfSSL_no_dhe_psk(client.ssl);
        wolfSSL_no_dhe_psk(server.ssl);
    }
    if (early && resume != NULL) {
        int written;
        recipes_border("-", "", 0);
        client.sends_data = 0;
        int result = wolfSSL_write_early_data(client.ssl, request, (int)sizeof request - 1,
                                              &written);
        waits(&client, result);
    }
    int done[2] = {0, 0};
    int taken = 0;
    while (!done[0] || !done[1]) {
        recipes_border("-", "", 0);
        if (!done[0])
            done[0] = !waits(&client, wolfSSL_connect(client.ssl));
        recipes_border("-", "", 0);
        if (early && resume != NULL && !taken) {
            static unsigned char data[16384];
            int read = 0;
            wolfSSL_read_early_data(server.ssl, data, sizeof data, &read);
            received(&server);
            taken = read > 0;
        }
        if (!done[1])
            done[1] = !waits(&server, wolfSSL_accept(server.ssl));
    }
    if (!(early && resume != NULL))
        send_data(&client, &server, (int)sizeof request - 1);
    send_data(&server, &client, response);
    recipes_border("-", "", 0);
    if (keep != NULL)
        *keep = wolfSSL_get1_session(client.ssl);
    if (resume != NULL)
        fail("the session was not resumed", !wolfSSL_session_reused(client.ssl));
    wolfSSL_free(client.ssl);
    wolfSSL_free(server.ssl);
}

int main(int count, char **words)
{
    if (count != 10) {
        fprintf(stderr, "usage: see bench/recipes/wolfssl.c\n");
        return 2;
    }
    const char *aead = words[6];
    int rsa = strncmp(words[7], "rsa", 3) == 0;
    char suite[80];
    tls12 = recipes_tls12 = strcmp(words[2], "1.2") == 0;
    mutual = strcmp(words[4], "mutual") == 0;
    early = strcmp(words[3], "0-rtt") == 0;
    int resumed = strcmp(words[3], "full") != 0, psk_alone = strcmp(words[3], "psk_ke") == 0;
    int group = strcmp(words[5], "x25519") == 0 ? WOLFSSL_ECC_X25519 : WOLFSSL_ECC_SECP256R1;
    const char *hash = strcmp(aead, "AES_256_GCM") == 0 ? "SHA384" : "SHA256";
    const char *key = rsa ? "RSA" : "ECDSA";
    if (strncmp(aead, "CHACHA", 6) == 0)
        snprintf(suite, sizeof suite, tls12 ? "ECDHE-%s-CHACHA20-POLY1305"
                                            : "TLS13-CHACHA20-POLY1305-SHA256", key);
    else if (tls12)
        snprintf(suite, sizeof suite, "ECDHE-%s-AES%.3s-GCM-%s", key, aead + 4, hash);
    else
        snprintf(suite, sizeof suite, "TLS13-AES%.3s-GCM-%s", aead + 4, hash);
    wolfSSL_Init();
    configure(&client, "client", words[1], suite);
    configure(&server, "server", words[1], suite);
    int response = atoi(words[8]);
    WOLFSSL_SESSION *kept = NULL;
    connect_both(group, response, NULL, 0, &kept);
    if (resumed)
        connect_both(group, response, kept, psk_alone, NULL);
    recipes_begin();
    for (int round = 0; round < atoi(words[9]); round++) {
        recipes_border("=", "", 0);
        connect_both(group, response, resumed ? kept : NULL, psk_alone, NULL);
    }
    return 0;
}
