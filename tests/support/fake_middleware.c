// SPDX-License-Identifier: Apache-2.0 OR MIT
// A middleware for tests of the profiler: its dds_write encrypts a payload and two submessages and
// authenticates the message, all with a nonce from the random generator; WITH_SECURITY leaves the
// name of the builtin plugin in it. `write` fails where data is null. What is batched is
// authenticated by the flush that sends it.
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stddef.h>
#include <string.h>

#ifdef WITH_SECURITY
const char plugin_name[] = "DDS:Crypto:AES-GCM-GMAC";
#endif

static int secured, batches, unsent;

void middleware_secure(int on);
void dds_write_set_batch(int on);
int dds_write(int writer, const void *data);
void dds_write_flush(int writer);
int middleware_protect(int bytes, int encrypt);

void middleware_secure(int on) { secured = on; }

void dds_write_set_batch(int on) { batches = on; }

__attribute__((noinline)) int middleware_protect(int bytes, int encrypt) {
  static unsigned char key[32], input[4096], output[4096];
  unsigned char nonce[12];
  int length;
  RAND_bytes(nonce, sizeof nonce);
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), NULL, key, nonce);
  EVP_EncryptUpdate(context, encrypt ? output : NULL, &length, input, bytes);
  EVP_EncryptFinal_ex(context, output, &length);
  EVP_CIPHER_CTX_free(context);
  return length;
}

int dds_write(int writer, const void *data) {
  (void)writer;
  if (data == NULL) return -1;
  if (secured) {
    middleware_protect((int)strlen(data), 1);
    middleware_protect(80, 1);
    middleware_protect(40, 1);
    unsent = 1;
    if (!batches) dds_write_flush(writer);
  }
  return 0;
}

void dds_write_flush(int writer) {
  (void)writer;
  if (unsent) middleware_protect(200, 0);
  unsent = 0;
}
