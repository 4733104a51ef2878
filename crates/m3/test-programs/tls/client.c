/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A TLS 1.3 client for the simulated chip: Mbed TLS, with the server behind the simulator's pipe
 * and a mark at each message. Its random numbers are a fixed stream, so that recorded server
 * flights can be replayed: for measurements only, never for real connections. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mbedtls/platform.h"
#include "mbedtls/ssl.h"
#include "psa/crypto.h"
#include "warifu_m3.h"
#include CA /* the root that the server's certificate has: `server_ca` */
#ifdef FLIGHTS
#include FLIGHTS /* what a server answered to this very client: `flights` */
#endif

#ifndef GROUP
#define GROUP MBEDTLS_SSL_IANA_TLS_GROUP_SECP256R1
#endif
#ifndef SUITE
#define SUITE MBEDTLS_TLS1_3_AES_128_GCM_SHA256
#endif

#define PIPE_DATA WARIFU_PORT(0x100)
#define PIPE_STATUS WARIFU_PORT(0x104)

static size_t heap_now, heap_peak;
static uint64_t stream = 0x57415249465531ull;

void print(const char *text);
void print_hex(uint32_t value);

/* Bytes that the library allocates, without the allocator's own data. */
static void *counted_calloc(size_t count, size_t size)
{
    if (size != 0 && count > (SIZE_MAX - 8) / size)
        return NULL;
    size_t bytes = count * size;
    size_t *block = calloc(1, bytes + 8);
    if (block == NULL)
        return NULL;
    *block = bytes;
    heap_now += bytes;
    if (heap_now > heap_peak)
        heap_peak = heap_now;
    return (uint8_t *)block + 8;
}

static void counted_free(void *memory)
{
    if (memory == NULL)
        return;
    size_t *block = (size_t *)((uint8_t *)memory - 8);
    heap_now -= *block;
    free(block);
}

/* SplitMix64: the same stream in each run. */
psa_status_t mbedtls_psa_external_get_random(mbedtls_psa_external_random_context_t *context,
                                             uint8_t *to, size_t bytes, size_t *given)
{
    (void)context;
    for (size_t i = 0; i < bytes; i++) {
        uint64_t z = stream += 0x9e3779b97f4a7c15ull;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ z >> 27) * 0x94d049bb133111ebull;
        to[i] = (uint8_t)(z >> 31 ^ z);
    }
    *given = bytes;
    return PSA_SUCCESS;
}

static int random_bytes(void *context, unsigned char *to, size_t bytes)
{
    (void)context;
    return psa_generate_random(to, bytes) == PSA_SUCCESS ? 0 : -1;
}

#ifdef FLIGHTS
static int pipe_send(void *context, const unsigned char *from, size_t bytes)
{
    (void)context;
    (void)from;
    return (int)bytes;
}

static int pipe_receive(void *context, unsigned char *to, size_t bytes)
{
    static size_t taken;
    (void)context;
    size_t count = sizeof flights - taken < bytes ? sizeof flights - taken : bytes;
    if (count == 0)
        return MBEDTLS_ERR_SSL_CONN_EOF;
    memcpy(to, flights + taken, count);
    taken += count;
    return (int)count;
}
#else
static int pipe_send(void *context, const unsigned char *from, size_t bytes)
{
    (void)context;
    for (size_t i = 0; i < bytes; i++)
        PIPE_DATA = from[i];
    return (int)bytes;
}

static int pipe_receive(void *context, unsigned char *to, size_t bytes)
{
    (void)context;
    uint32_t there = PIPE_STATUS;
    if (there == UINT32_MAX)
        return MBEDTLS_ERR_SSL_CONN_EOF;
    if (there == 0)
        return MBEDTLS_ERR_SSL_WANT_READ;
    size_t count = there < bytes ? there : bytes;
    for (size_t i = 0; i < count; i++)
        to[i] = (unsigned char)PIPE_DATA;
    return (int)count;
}
#endif

/* A handshake step of the library handles the message after which its state is named. */
static const char *message(int state)
{
    switch (state) {
    case MBEDTLS_SSL_HELLO_REQUEST: return "start";
    case MBEDTLS_SSL_CLIENT_HELLO: return "ClientHello";
    case MBEDTLS_SSL_SERVER_HELLO: return "ServerHello";
    case MBEDTLS_SSL_ENCRYPTED_EXTENSIONS: return "EncryptedExtensions";
    /* Whether one is asked for, which is not so here, it learns by reading the next message. */
    case MBEDTLS_SSL_CERTIFICATE_REQUEST: return "Certificate";
    case MBEDTLS_SSL_SERVER_CERTIFICATE: return "Certificate";
    case MBEDTLS_SSL_CERTIFICATE_VERIFY: return "CertificateVerify";
    case MBEDTLS_SSL_SERVER_FINISHED: return "Finished_received";
    case MBEDTLS_SSL_CLIENT_CCS_AFTER_SERVER_FINISHED: return "Finished_sent";
    case MBEDTLS_SSL_CLIENT_CERTIFICATE: return "Finished_sent";
    case MBEDTLS_SSL_CLIENT_FINISHED: return "Finished_sent";
    case MBEDTLS_SSL_FLUSH_BUFFERS: return "end";
    case MBEDTLS_SSL_HANDSHAKE_WRAPUP: return "end";
    default: return "other";
    }
}

static int failed(const char *what, int code)
{
    print(what);
    print_hex((uint32_t)-code);
    print("\n");
    return 1;
}

int main(void)
{
    static mbedtls_ssl_context ssl;
    static mbedtls_ssl_config config;
    static mbedtls_x509_crt ca;
    static const int suites[] = {SUITE, 0};
    static const uint16_t groups[] = {GROUP, MBEDTLS_SSL_IANA_TLS_GROUP_NONE};
    int result;

    mbedtls_platform_set_calloc_free(counted_calloc, counted_free);
    if (psa_crypto_init() != PSA_SUCCESS)
        return failed("psa_crypto_init ", 0);
    mbedtls_ssl_init(&ssl);
    mbedtls_ssl_config_init(&config);
    mbedtls_x509_crt_init(&ca);
    if ((result = mbedtls_x509_crt_parse_der(&ca, server_ca, sizeof server_ca)) != 0)
        return failed("the CA's certificate ", result);
    if ((result = mbedtls_ssl_config_defaults(
             &config, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM,
             MBEDTLS_SSL_PRESET_DEFAULT)) != 0)
        return failed("the configuration ", result);
    mbedtls_ssl_conf_rng(&config, random_bytes, NULL);
    mbedtls_ssl_conf_ciphersuites(&config, suites);
    mbedtls_ssl_conf_groups(&config, groups);
    mbedtls_ssl_conf_ca_chain(&config, &ca, NULL);
    mbedtls_ssl_conf_authmode(&config, MBEDTLS_SSL_VERIFY_REQUIRED);
    if ((result = mbedtls_ssl_setup(&ssl, &config)) != 0)
        return failed("mbedtls_ssl_setup ", result);
    if ((result = mbedtls_ssl_set_hostname(&ssl, "server.test")) != 0)
        return failed("the server's name ", result);
    mbedtls_ssl_set_bio(&ssl, NULL, pipe_send, pipe_receive, NULL);

    while (!mbedtls_ssl_is_handshake_over(&ssl)) {
        WARIFU_MARK(message(ssl.MBEDTLS_PRIVATE(state)));
        result = mbedtls_ssl_handshake_step(&ssl);
        if (result != 0 && result != MBEDTLS_ERR_SSL_WANT_READ)
            return failed("the handshake ", result);
    }
    WARIFU_MARK("over");

    static const unsigned char request[] = "GET / HTTP/1.0\r\n\r\n";
    if ((result = mbedtls_ssl_write(&ssl, request, sizeof request - 1)) < 0)
        return failed("the request ", result);
    static unsigned char answer[256];
    do {
        result = mbedtls_ssl_read(&ssl, answer, sizeof answer);
        /* Tickets come first. */
    } while (result == MBEDTLS_ERR_SSL_WANT_READ ||
             result == MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET);
    if (result <= 0)
        return failed("the answer ", result);
    print(mbedtls_ssl_get_ciphersuite(&ssl));
    print(result >= 15 && memcmp(answer, "HTTP/1.0 200 ok", 15) == 0 ? " answered\n"
                                                                     : " unexpected answer\n");
    print("heap_peak ");
    print_hex((uint32_t)heap_peak);
    print("\n");
    return 0;
}
