// SPDX-License-Identifier: Apache-2.0 OR MIT
// What the profile is held against: so many messages of each kind, from a function each, as Fast
// DDS makes them (one call sets cipher, key and nonce) and as Cyclone does (two).
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

static unsigned char key[32], nonce[12], tag[16], plain[100], sealed[100];

__attribute__((noinline, visibility("default"))) void seal_at_once(void) {
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  int bytes;
  EVP_EncryptInit(context, EVP_aes_256_gcm(), key, nonce);
  EVP_EncryptUpdate(context, sealed, &bytes, plain, sizeof plain);
  EVP_EncryptFinal(context, sealed, &bytes);
  EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, sizeof tag, tag);
  EVP_CIPHER_CTX_free(context);
}

__attribute__((noinline, visibility("default"))) void sign_in_two_steps(void) {
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  int bytes;
  EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), NULL, NULL, NULL);
  EVP_EncryptInit_ex(context, NULL, NULL, key, nonce);
  EVP_EncryptUpdate(context, NULL, &bytes, plain, 40);
  EVP_EncryptUpdate(context, NULL, &bytes, plain, 20);
  EVP_EncryptFinal_ex(context, sealed, &bytes);
  EVP_CIPHER_CTX_free(context);
}

__attribute__((noinline, visibility("default"))) int open_it(void) {
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  unsigned char out[100];
  int bytes;
  EVP_DecryptInit(context, EVP_aes_256_gcm(), key, nonce);
  EVP_DecryptUpdate(context, out, &bytes, sealed, sizeof sealed);
  EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, sizeof tag, tag);
  const int is_right = EVP_DecryptFinal_ex(context, out + bytes, &bytes);
  EVP_CIPHER_CTX_free(context);
  return is_right;
}

int main(void) {
  for (int i = 0; i < 7; i++) {
    seal_at_once();
  }
  int opened = 0;
  for (int i = 0; i < 5; i++) {
    opened += open_it();
  }
  tag[0] ^= 1;
  opened += open_it();
  for (int i = 0; i < 3; i++) {
    sign_in_two_steps();
  }
  printf("%d opened\n", opened);
  return 9;
}
