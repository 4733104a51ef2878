// SPDX-License-Identifier: Apache-2.0 OR MIT
// Runs evp_program.c as a library in a scope of its own, as ROS 2 loads its middleware.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  int (*run)(int, char **) = (int (*)(int, char **))dlsym(library, "evp_main");
  return run(argc - 1, argv + 1);
}
