// SPDX-License-Identifier: Apache-2.0 OR MIT
// Publishes with fake_middleware.c, which it loads in a scope of its own, as ROS 2 does.
//
//   fake-publisher LIBRARY MESSAGES SECURED [stay|fail|batch|other-flushes]
//
// It flushes each five messages, twice: `batch` by itself, `other-flushes` in another thread.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void (*flush)(int);

static void *flush_twice(void *unused) {
  flush(1);
  flush(1);
  return unused;
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  void (*secure)(int) = (void (*)(int))dlsym(library, "middleware_secure");
  // The adapter that calls the middleware is a library that depends on it; here it is this program,
  // so that the probe's own is what the linker would have found first.
  void *write = dlsym(RTLD_DEFAULT, "dds_write");
  if (write == NULL) write = dlsym(library, "dds_write");
  int (*publish)(int, const void *) = (int (*)(int, const void *))write;
  flush = (void (*)(int))dlsym(RTLD_DEFAULT, "dds_write_flush");
  if (flush == NULL) flush = (void (*)(int))dlsym(library, "dds_write_flush");
  void (*set_batch)(int) = (void (*)(int))dlsym(library, "dds_write_set_batch");
  const int other = argc > 4 && strcmp(argv[4], "other-flushes") == 0;
  const int batch = other || (argc > 4 && strcmp(argv[4], "batch") == 0);
  secure(atoi(argv[3]));
  set_batch(batch);
  for (int index = 0; index < atoi(argv[2]); ++index) {
    if (publish(1, "sixteen bytes...") != 0) return 1;
    if (!batch || index % 5 != 4) continue;
    pthread_t thread;
    if (!other) {
      flush_twice(NULL);
    } else if (pthread_create(&thread, NULL, flush_twice, NULL) != 0 ||
               pthread_join(thread, NULL) != 0) {
      return 1;
    }
  }
  printf("published\n");
  fflush(stdout);
  if (argc > 4 && strcmp(argv[4], "stay") == 0) sleep(60);
  if (argc > 4 && strcmp(argv[4], "fail") == 0) publish(1, NULL);
  return 0;
}
