/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A TLS client of wolfSSL whose key, certificates and key agreement are an IoT SAFE SIM's, behind a
 * modem's AT+CSIM: client LINE PORT 1.2|1.3 IDLE_MS. It asks the server on this machine for "/" and
 * prints the answer. wolfSSL is unmodified; what is here is what its port asks of an application.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <wolfssl/options.h>
#include <wolfssl/ssl.h>
#include <wolfssl/wolfcrypt/port/iotsafe/iotsafe.h>

/* GSMA IoT.05's usual slots, as the virtual card has them. */
enum { CLIENT_KEY = 1, CLIENT_CERTIFICATE = 2, AUTHORITY = 3, ECDH_PAIR = 4, PEER_KEY = 5 };
enum { CERTIFICATE_MAX_BYTES = 2048 };

static int line;
static int idle_ms;

static int fail(const char *what, int code)
{
    char text[WOLFSSL_MAX_ERROR_SZ];

    fprintf(stderr, "client: %s: %d %s\n", what, code, wolfSSL_ERR_error_string(code, text));
    return EXIT_FAILURE;
}

/* One line of the modem, ended by a zero; 0 when none comes for the idle time, which is how
 * wolfSSL's port knows that an answer is complete. */
static int modem_read(char *buffer, int length)
{
    int got = 0;

    while (got < length - 1) {
        struct pollfd wait = {.fd = line, .events = POLLIN};

        if (poll(&wait, 1, idle_ms) <= 0 || read(line, buffer + got, 1) != 1)
            break;
        if (buffer[got++] == '\n')
            break;
    }
    buffer[got] = '\0';
    return got;
}

static int modem_write(const char *buffer, int length)
{
    return (int)write(line, buffer, (size_t)length);
}

static int open_line(const char *path)
{
    struct termios modes;

    line = open(path, O_RDWR | O_NOCTTY);
    if (line < 0 || tcgetattr(line, &modes) != 0)
        return -1;
    cfmakeraw(&modes);
    return tcsetattr(line, TCSANOW, &modes);
}

static int connect_to(const char *port)
{
    struct sockaddr_in server = {.sin_family = AF_INET};
    int to = socket(AF_INET, SOCK_STREAM, 0);

    server.sin_port = htons((unsigned short)atoi(port));
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return connect(to, (struct sockaddr *)&server, sizeof server) == 0 ? to : -1;
}

/* The client's certificate and the authority's, both from the SIM. */
static int load_certificates(WOLFSSL_CTX *context)
{
    static unsigned char certificate[CERTIFICATE_MAX_BYTES];
    int bytes = wolfIoTSafe_GetCert(AUTHORITY, certificate, sizeof certificate);

    if (bytes < 1)
        return fail("the authority's certificate", bytes);
    bytes = wolfSSL_CTX_load_verify_buffer(context, certificate, bytes, WOLFSSL_FILETYPE_ASN1);
    if (bytes != WOLFSSL_SUCCESS)
        return fail("the authority's certificate is none", bytes);
    bytes = wolfIoTSafe_GetCert(CLIENT_CERTIFICATE, certificate, sizeof certificate);
    if (bytes < 1)
        return fail("the client's certificate", bytes);
    bytes = wolfSSL_CTX_use_certificate_buffer(context, certificate, bytes, WOLFSSL_FILETYPE_ASN1);
    return bytes == WOLFSSL_SUCCESS ? 0 : fail("the client's certificate is none", bytes);
}

static int talk(WOLFSSL *ssl)
{
    static const char request[] = "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n";
    char answer[1024];
    int bytes = wolfSSL_connect(ssl);

    if (bytes != WOLFSSL_SUCCESS)
        return fail("the handshake", wolfSSL_get_error(ssl, bytes));
    printf("%s %s\n", wolfSSL_get_version(ssl), wolfSSL_get_cipher(ssl));
    if (wolfSSL_write(ssl, request, sizeof request - 1) != (int)sizeof request - 1)
        return fail("the request", wolfSSL_get_error(ssl, -1));
    while ((bytes = wolfSSL_read(ssl, answer, sizeof answer)) > 0)
        fwrite(answer, 1, (size_t)bytes, stdout);
    return 0;
}

int main(int count, char **words)
{
    WOLFSSL_CTX *context;
    WOLFSSL *ssl;
    int to;
    int code;

    if (count != 5) {
        fprintf(stderr, "usage: client LINE PORT 1.2|1.3 IDLE_MS\n");
        return 2;
    }
    idle_ms = atoi(words[4]);
    to = connect_to(words[2]);
    if (open_line(words[1]) != 0 || to < 0) {
        perror("client: the modem's line or the server");
        return EXIT_FAILURE;
    }
    wolfIoTSafe_SetCSIM_read_cb(modem_read);
    wolfIoTSafe_SetCSIM_write_cb(modem_write);
    wolfSSL_Init();
    context = wolfSSL_CTX_new(
        strcmp(words[3], "1.3") == 0 ? wolfTLSv1_3_client_method() : wolfTLSv1_2_client_method());
    if (context == NULL || (code = wolfSSL_CTX_iotsafe_enable(context)) != 0)
        return fail("IoT SAFE", context == NULL ? 0 : code);
    /* Of HKDF EXTRACT's answer the port takes 32 bytes (iotsafe.c of 5.5.4), so TLS 1.3 works with
     * SHA-256 alone. */
    if (strcmp(words[3], "1.3") == 0)
        wolfSSL_CTX_set_cipher_list(context, "TLS13-AES128-GCM-SHA256");
    if (load_certificates(context) != 0)
        return EXIT_FAILURE;
    ssl = wolfSSL_new(context);
    if (ssl == NULL)
        return fail("the connection", 0);
    /* The SIM has keys of this curve only; on another wolfSSL's port does not fall back. */
    wolfSSL_UseSupportedCurve(ssl, WOLFSSL_ECC_SECP256R1);
    wolfSSL_check_domain_name(ssl, "localhost");
    code = wolfSSL_iotsafe_on(ssl, CLIENT_KEY, ECDH_PAIR, PEER_KEY, PEER_KEY);
    if (code != 0)
        return fail("IoT SAFE on this connection", code);
    wolfSSL_set_fd(ssl, to);
    code = talk(ssl);
    wolfSSL_free(ssl);
    wolfSSL_CTX_free(context);
    wolfSSL_Cleanup();
    return code;
}
