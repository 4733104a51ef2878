/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Cycles of Mbed TLS's cryptography on the simulated chip, one line `name bytes cycles` for each
 * call, as `warifu calibrate m3` reads it. The calls are those that the library's TLS makes, as
 * bench/recipes counts them, with the objects of its client. */
#include <stdint.h>
#include <string.h>

#include "mbedtls/pk.h"
#include "mbedtls/x509_crt.h"
#include "psa/crypto.h"

struct certificate {
    const unsigned char *data;
    size_t bytes;
};
#define server_ca ecdsa_ca
#define server_certificate ecdsa_certificate
#define server_key ecdsa_key
#include "ECDSA.h"
#undef server_ca
#undef server_certificate
#undef server_key
#define server_ca rsa_ca
#define server_certificate rsa_certificate
#define server_key rsa_key
#include "RSA.h"

#define DEMCR (*(volatile uint32_t *)0xe000edfc)
#define DWT_CTRL (*(volatile uint32_t *)0xe0001000)
#define CYCCNT (*(volatile uint32_t *)0xe0001004)

void print(const char *text);

static void number(uint32_t value)
{
    char text[12], *at = text + sizeof text - 1;
    *at = 0;
    do
        *--at = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    print(at);
}

static void line(const char *name, size_t bytes, uint32_t cycles)
{
    print(name);
    print(" ");
    number(bytes);
    print(" ");
    number(cycles);
    print("\n");
}

#define TIMED(name, bytes, call)                          \
    do {                                                  \
        uint32_t start = CYCCNT;                          \
        int status = (int)(call);                         \
        uint32_t cycles = CYCCNT - start;                 \
        if (status != 0) {                                \
            print("# " name " fails\n");                  \
            return 1;                                     \
        }                                                 \
        line(name, bytes, cycles);                        \
    } while (0)

/* SplitMix64: the same stream in each run. */
psa_status_t mbedtls_psa_external_get_random(mbedtls_psa_external_random_context_t *context,
                                             uint8_t *to, size_t bytes, size_t *given)
{
    static uint64_t stream = 0x57415249465532ull;
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

static unsigned char data[4096 + 64], sealed[4096 + 64];

/* mbedtls_ssl_tls13_generate_and_write_xxdh_key_exchange() */
static psa_status_t key_share(psa_key_type_t type, size_t bits, psa_key_id_t *key,
                              unsigned char *share, size_t *bytes)
{
    psa_key_attributes_t attributes = PSA_KEY_ATTRIBUTES_INIT;
    psa_set_key_usage_flags(&attributes, PSA_KEY_USAGE_DERIVE);
    psa_set_key_algorithm(&attributes, PSA_ALG_ECDH);
    psa_set_key_type(&attributes, type);
    psa_set_key_bits(&attributes, bits);
    psa_status_t status = psa_generate_key(&attributes, key);
    return status != PSA_SUCCESS ? status : psa_export_public_key(*key, share, 65, bytes);
}

/* mbedtls_ssl_tls13_hkdf_expand_label() and hkdf_expand() below it */
static psa_status_t expand(psa_algorithm_t hash, unsigned char *to, size_t bytes)
{
    psa_key_derivation_operation_t operation = PSA_KEY_DERIVATION_OPERATION_INIT;
    psa_status_t status = psa_key_derivation_setup(&operation, PSA_ALG_HKDF_EXPAND(hash));
    if (status == PSA_SUCCESS)
        status = psa_key_derivation_input_bytes(&operation, PSA_KEY_DERIVATION_INPUT_SECRET, data,
                                                PSA_HASH_LENGTH(hash));
    if (status == PSA_SUCCESS) /* length, "tls13 s hs traffic", a transcript's hash */
        status = psa_key_derivation_input_bytes(&operation, PSA_KEY_DERIVATION_INPUT_INFO, data,
                                                2 + 1 + 18 + 1 + PSA_HASH_LENGTH(hash));
    if (status == PSA_SUCCESS)
        status = psa_key_derivation_output_bytes(&operation, to, bytes);
    psa_status_t end = psa_key_derivation_abort(&operation);
    return status != PSA_SUCCESS ? status : end;
}

static psa_status_t digest(psa_algorithm_t hash, size_t bytes)
{
    unsigned char to[64];
    size_t length;
    psa_hash_operation_t operation = PSA_HASH_OPERATION_INIT;
    psa_status_t status = psa_hash_setup(&operation, hash);
    if (status == PSA_SUCCESS)
        status = psa_hash_update(&operation, data, bytes);
    return status != PSA_SUCCESS ? status : psa_hash_finish(&operation, to, sizeof to, &length);
}

static int groups(void)
{
    static const struct {
        psa_key_type_t type;
        size_t bits;
    } kinds[] = {{PSA_KEY_TYPE_ECC_KEY_PAIR(PSA_ECC_FAMILY_SECP_R1), 256},
                 {PSA_KEY_TYPE_ECC_KEY_PAIR(PSA_ECC_FAMILY_MONTGOMERY), 255}};
    for (int round = 0; round < 3; round++)
        for (int kind = 0; kind < 2; kind++) {
            psa_key_id_t own, peer;
            unsigned char mine[65], theirs[65], secret[32];
            size_t bytes, there, length;
            if (key_share(kinds[kind].type, kinds[kind].bits, &peer, theirs, &there) != 0)
                return 1;
            if (kind == 0) {
                TIMED("ecdh.keygen.secp256r1", 0, key_share(kinds[0].type, 256, &own, mine, &bytes));
                TIMED("ecdh.derive.secp256r1", 0, psa_raw_key_agreement(PSA_ALG_ECDH, own, theirs,
                      there, secret, sizeof secret, &length));
            } else {
                TIMED("ecdh.keygen.x25519", 0, key_share(kinds[1].type, 255, &own, mine, &bytes));
                TIMED("ecdh.derive.x25519", 0, psa_raw_key_agreement(PSA_ALG_ECDH, own, theirs,
                      there, secret, sizeof secret, &length));
            }
            psa_destroy_key(own);
            psa_destroy_key(peer);
        }
    return 0;
}

static int signatures(void)
{
    static unsigned char signature[512];
    unsigned char hash[32];
    size_t length;
    mbedtls_pk_context ecdsa, rsa;
    mbedtls_pk_rsassa_pss_options pss = {MBEDTLS_MD_SHA256, 32};
    mbedtls_pk_init(&ecdsa);
    mbedtls_pk_init(&rsa);
    if (mbedtls_pk_parse_key(&ecdsa, ecdsa_key, sizeof ecdsa_key, NULL, 0, random_bytes, NULL) != 0 ||
        mbedtls_pk_parse_key(&rsa, rsa_key, sizeof rsa_key, NULL, 0, random_bytes, NULL) != 0)
        return 1;
    for (int round = 0; round < 3; round++) {
        random_bytes(NULL, hash, sizeof hash);
        TIMED("sign.ecdsa_secp256r1", 0, mbedtls_pk_sign_ext(MBEDTLS_PK_ECDSA, &ecdsa,
              MBEDTLS_MD_SHA256, hash, 32, signature, sizeof signature, &length, random_bytes, NULL));
        TIMED("verify.ecdsa_secp256r1", 0, mbedtls_pk_verify_ext(MBEDTLS_PK_ECDSA, NULL, &ecdsa,
              MBEDTLS_MD_SHA256, hash, 32, signature, length));
        if (round == 0)
            TIMED("sign.rsa-2048", 0, mbedtls_pk_sign_ext(MBEDTLS_PK_RSASSA_PSS, &rsa,
                  MBEDTLS_MD_SHA256, hash, 32, signature, sizeof signature, &length, random_bytes,
                  NULL));
        else if (mbedtls_pk_sign_ext(MBEDTLS_PK_RSASSA_PSS, &rsa, MBEDTLS_MD_SHA256, hash, 32,
                                     signature, sizeof signature, &length, random_bytes, NULL) != 0)
            return 1;
        TIMED("verify.rsa-2048", 0, mbedtls_pk_verify_ext(MBEDTLS_PK_RSASSA_PSS, &pss, &rsa,
              MBEDTLS_MD_SHA256, hash, 32, signature, length));
    }
    return 0;
}

static int hashes(void)
{
    static const size_t sizes[] = {0, 55, 119, 503, 2039, 4087};
    unsigned char to[64];
    size_t length;
    psa_key_id_t key;
    psa_key_attributes_t attributes = PSA_KEY_ATTRIBUTES_INIT;
    psa_set_key_usage_flags(&attributes, PSA_KEY_USAGE_SIGN_MESSAGE);
    psa_set_key_algorithm(&attributes, PSA_ALG_HMAC(PSA_ALG_SHA_256));
    psa_set_key_type(&attributes, PSA_KEY_TYPE_HMAC);
    if (psa_import_key(&attributes, data, 32, &key) != PSA_SUCCESS)
        return 1;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        TIMED("hash.sha-256", sizes[i], digest(PSA_ALG_SHA_256, sizes[i]));
        TIMED("hmac.sha-256", sizes[i], psa_mac_compute(key, PSA_ALG_HMAC(PSA_ALG_SHA_256), data,
              sizes[i], to, sizeof to, &length));
    }
    TIMED("hkdf.sha-256", 0, expand(PSA_ALG_SHA_256, to, 32));
    TIMED("random", 32, psa_generate_random(to, 32));
    TIMED("random", 64, psa_generate_random(to, 64));
    return 0;
}

static int records(void)
{
    static const size_t sizes[] = {16, 64, 256, 1024, 4096};
    static const struct {
        psa_key_type_t type;
        psa_algorithm_t algorithm;
        size_t bits;
    } kinds[] = {{PSA_KEY_TYPE_AES, PSA_ALG_GCM, 128},
                 {PSA_KEY_TYPE_CHACHA20, PSA_ALG_CHACHA20_POLY1305, 256}};
    for (int kind = 0; kind < 2; kind++) {
        psa_key_id_t key;
        size_t length, opened;
        psa_key_attributes_t attributes = PSA_KEY_ATTRIBUTES_INIT;
        psa_set_key_usage_flags(&attributes, PSA_KEY_USAGE_ENCRYPT | PSA_KEY_USAGE_DECRYPT);
        psa_set_key_algorithm(&attributes, kinds[kind].algorithm);
        psa_set_key_type(&attributes, kinds[kind].type);
        if (psa_import_key(&attributes, data, kinds[kind].bits / 8, &key) != PSA_SUCCESS)
            return 1;
#define SEAL psa_aead_encrypt(key, kinds[kind].algorithm, data, 12, data, 5, data, sizes[i], sealed, \
                              sizeof sealed, &length)
#define OPEN psa_aead_decrypt(key, kinds[kind].algorithm, data, 12, data, 5, sealed, length, data, \
                              sizeof data, &opened)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            if (kind == 0) {
                TIMED("aead.seal.AES_128_GCM", sizes[i], SEAL);
                TIMED("aead.open.AES_128_GCM", sizes[i], OPEN);
            } else {
                TIMED("aead.seal.CHACHA20_POLY1305", sizes[i], SEAL);
                TIMED("aead.open.CHACHA20_POLY1305", sizes[i], OPEN);
            }
        psa_destroy_key(key);
    }
    return 0;
}

static int certificates(void)
{
    static const struct certificate all[] = {
        {ecdsa_certificate, sizeof ecdsa_certificate},
        {rsa_certificate, sizeof rsa_certificate},
        {ecdsa_ca, sizeof ecdsa_ca},
        {rsa_ca, sizeof rsa_ca},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        mbedtls_x509_crt parsed;
        mbedtls_x509_crt_init(&parsed);
        TIMED("x509.parse", all[i].bytes, mbedtls_x509_crt_parse_der(&parsed, all[i].data,
              all[i].bytes));
        mbedtls_x509_crt_free(&parsed);
    }
    return 0;
}

int main(void)
{
    DEMCR |= 1 << 24; /* TRCENA */
    DWT_CTRL |= 1;    /* CYCCNTENA */
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)i;
    if (psa_crypto_init() != PSA_SUCCESS)
        return 1;
    return groups() || signatures() || hashes() || records() || certificates();
}
