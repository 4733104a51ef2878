// SPDX-License-Identifier: Apache-2.0 OR MIT
// A program that loads a cryptographic plugin as Cyclone DDS does, and begins and ends some
// domains: dds_host INIT DOMAINS [mark]. On stdout, whether it has more rights than its user, and
// what each init gives; with mark on stderr, where all have begun. The plugin is LIBRARY, a path
// that is fixed when it is compiled: a test gives it root's rights.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

int main(int argc, char **argv) {
  // A plugin's own functions alone: dlsym(3) finds those of libc, too.
  if (argc < 3 || strncmp(argv[1], "init_crypto", 11) != 0) return 2;
  void *library = dlopen(LIBRARY, RTLD_NOW);
  if (library == NULL) {
    puts(dlerror());
    return 3;
  }
  int (*init)(const char *, void **, void *) = 0;
  int (*finalize)(void *) = 0;
  *(void **)&init = dlsym(library, argv[1]);
  *(void **)&finalize = dlsym(library, "finalize_crypto");
  if (init == 0 || finalize == 0) return 3;
  printf("%lu", getauxval(AT_SECURE));
  void *domains[8] = {0};
  const int count = atoi(argv[2]);
  for (int index = 0; index < count && index < 8; ++index) {
    printf(" %d", init("", &domains[index], NULL));
  }
  if (argc > 3) fputs("all have begun\n", stderr);
  for (int index = 0; index < count && index < 8; ++index) {
    if (domains[index] != NULL) finalize(domains[index]);
  }
  puts("");
  return 0;
}
