// SPDX-License-Identifier: Apache-2.0 OR MIT
// Asks OpenSSL for a known number of operations, for tests of the probe.
//
//   evp-program KIND COUNT [BYTES]
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned char key[32], nonce[12], tag[16], input[65536], output[65536];

static void need(int right, const char *what) {
  if (!right) {
    fprintf(stderr, "evp-program: %s failed\n", what);
    exit(1);
  }
}

// As many cipher libraries call: the cipher first, then key and nonce.
static void seal(EVP_CIPHER_CTX *context, int first, int associated, int bytes) {
  int length;
  if (first) need(EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), NULL, NULL, NULL), "cipher");
  need(EVP_EncryptInit_ex(context, NULL, NULL, first ? key : NULL, nonce), "key");
  if (associated > 0) {
    need(EVP_EncryptUpdate(context, NULL, &length, input, associated), "associated data");
  }
  if (bytes > 0) need(EVP_EncryptUpdate(context, output, &length, input, bytes), "update");
  need(EVP_EncryptFinal_ex(context, output, &length), "end");
  need(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag), "tag");
}

static void seal_anew(int associated, int bytes) {
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  seal(context, 1, associated, bytes);
  EVP_CIPHER_CTX_free(context);
}

static void open_with_wrong_tag(int bytes) {
  int length;
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  need(EVP_DecryptInit_ex(context, EVP_aes_128_gcm(), NULL, key, nonce), "key");
  need(EVP_DecryptUpdate(context, output, &length, input, bytes), "update");
  need(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, tag), "tag");
  need(EVP_DecryptFinal_ex(context, output, &length) <= 0, "refusal");
  EVP_CIPHER_CTX_free(context);
}

// Encrypts and decrypts, and compares.
static void round_trip(int bytes) {
  static unsigned char back[sizeof output];
  int length;
  memset(input, 'x', (size_t)bytes);
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  seal(context, 1, 13, bytes);
  need(EVP_DecryptInit_ex(context, EVP_aes_256_gcm(), NULL, key, nonce), "key");
  need(EVP_DecryptUpdate(context, NULL, &length, input, 13), "associated data");
  need(EVP_DecryptUpdate(context, back, &length, output, bytes), "update");
  need(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, tag), "tag");
  need(EVP_DecryptFinal_ex(context, back + bytes, &length) == 1, "end");
  need(memcmp(back, input, (size_t)bytes) == 0, "round trip");
  EVP_CIPHER_CTX_free(context);
}

static void *seal_many(void *count) {
  for (int index = 0; index < *(int *)count; ++index) {
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    unsigned char own[256];
    int length;
    need(EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), NULL, key, nonce), "key");
    need(EVP_EncryptUpdate(context, own, &length, input, 64), "update");
    need(EVP_EncryptFinal_ex(context, own, &length), "end");
    EVP_CIPHER_CTX_free(context);
  }
  return NULL;
}

#ifdef LIBRARY
#define MAIN evp_main
#else
#define MAIN main
#endif

int MAIN(int argc, char **argv);
int MAIN(int argc, char **argv) {
  const char *kind = argc > 2 ? argv[1] : "";
  int count = argc > 2 ? atoi(argv[2]) : 0;
  const int bytes = argc > 3 ? atoi(argv[3]) : 64;
  need(bytes >= 0 && bytes <= (int)sizeof input, "BYTES from 0 to 65536");
  if (strcmp(kind, "privileged") == 0) {
    printf("%lu\n", getauxval(AT_SECURE));
    fflush(stdout);
  }
  if (strcmp(kind, "cached") == 0) {
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    for (int index = 0; index < count; ++index) seal(context, index == 0, 0, bytes);
    EVP_CIPHER_CTX_free(context);
    return 0;
  }
  if (strcmp(kind, "threads") == 0) {
    pthread_t threads[4];
    for (int index = 0; index < 4; ++index) {
      need(pthread_create(&threads[index], NULL, seal_many, &count) == 0, "thread");
    }
    for (int index = 0; index < 4; ++index) pthread_join(threads[index], NULL);
    return 0;
  }
  for (int index = 0; index < count; ++index) {
    if (strcmp(kind, "gmac") == 0) {
      seal_anew(bytes, 0);
    } else if (strcmp(kind, "wrong-tag") == 0) {
      open_with_wrong_tag(bytes);
    } else if (strcmp(kind, "round-trip") == 0) {
      round_trip(bytes);
    } else if (strcmp(kind, "random") == 0) {
      need(RAND_bytes(output, bytes), "random");
    } else if (strcmp(kind, "hmac") == 0) {
      need(HMAC(EVP_sha256(), key, 32, input, (size_t)bytes, output, NULL) != NULL, "hmac");
    } else {
      seal_anew(13, bytes);
    }
  }
  if (strcmp(kind, "killed") == 0) raise(SIGKILL);
  if (strcmp(kind, "forked") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      for (int index = 0; index < count; ++index) seal_anew(13, bytes);
      _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  }
  if (strcmp(kind, "executed") == 0) {
    execl("/proc/self/exe", argv[0], "gcm", argv[2], NULL);
  }
  return 0;
}
