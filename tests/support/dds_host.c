// SPDX-License-Identifier: Apache-2.0 OR MIT
// A program that loads a cryptographic plugin as Cyclone DDS does, and begins and ends some
// domains: dds_host LIBRARY INIT DOMAINS [mark]. On stdout, whether it has more rights than its
// user, and what each init gives; with mark on stderr, where all have begun.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  void *library = dlopen(argv[1], RTLD_NOW);
  if (library == NULL) {
    puts(dlerror());
    return 3;
  }
  int (*init)(const char *, void **, void *) = 0;
  int (*finalize)(void *) = 0;
  *(void **)&init = dlsym(library, argv[2]);
  *(void **)&finalize = dlsym(library, "finalize_crypto");
  if (init == 0 || finalize == 0) return 3;
  printf("%lu", getauxval(AT_SECURE));
  void *domains[8] = {0};
  const int count = atoi(argv[3]);
  for (int index = 0; index < count && index < 8; ++index) {
    printf(" %d", init("", &domains[index], NULL));
  }
  if (argc > 4) fputs("all have begun\n", stderr);
  for (int index = 0; index < count && index < 8; ++index) {
    if (domains[index] != NULL) finalize(domains[index]);
  }
  puts("");
  return 0;
}
