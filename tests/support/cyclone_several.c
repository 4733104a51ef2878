// SPDX-License-Identifier: Apache-2.0 OR MIT
// Several secured participants of Cyclone DDS in one process, on one topic:
//
//   cyclone_several write|read COUNT PEERS LIBRARY ENCLAVE=AEAD ..
//
// Each has Warifu's plugin in LIBRARY, and a writer or a reader with an AEAD of its own. Those that
// write wait until each has matched PEERS readers, and write COUNT messages in turn, which say by
// whom: the index of their ENCLAVE=AEAD. Those that read stop when nothing has come for some
// seconds, and print a line of JSON each: how many messages of each writer's they have read.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dds/dds.h"
#include "std_msgs_string.h"

#define MOST 8
#define SECONDS_TO_MATCH 20
#define IDLE_SECONDS 6
// What a capture is searched for.
#define MARK "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

typedef std_msgs_msg_dds__String_ Text;

static void fail(const char *what) {
  fprintf(stderr, "cyclone_several: %s\n", what);
  exit(2);
}

static void pause_ms(long ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static void set_file(dds_qos_t *qos, const char *property, const char *enclave, const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "file:%s/%s", enclave, name);
  dds_qset_prop(qos, property, path);
}

static dds_entity_t participant(const char *library, const char *enclave) {
  dds_qos_t *qos = dds_create_qos();
  dds_qset_prop(qos, "dds.sec.auth.library.path", "dds_security_auth");
  dds_qset_prop(qos, "dds.sec.auth.library.init", "init_authentication");
  dds_qset_prop(qos, "dds.sec.auth.library.finalize", "finalize_authentication");
  dds_qset_prop(qos, "dds.sec.access.library.path", "dds_security_ac");
  dds_qset_prop(qos, "dds.sec.access.library.init", "init_access_control");
  dds_qset_prop(qos, "dds.sec.access.library.finalize", "finalize_access_control");
  dds_qset_prop(qos, "dds.sec.crypto.library.path", library);
  dds_qset_prop(qos, "dds.sec.crypto.library.init", "init_crypto");
  dds_qset_prop(qos, "dds.sec.crypto.library.finalize", "finalize_crypto");
  set_file(qos, "dds.sec.auth.identity_ca", enclave, "identity_ca.cert.pem");
  set_file(qos, "dds.sec.auth.identity_certificate", enclave, "cert.pem");
  set_file(qos, "dds.sec.auth.private_key", enclave, "key.pem");
  set_file(qos, "dds.sec.access.permissions_ca", enclave, "permissions_ca.cert.pem");
  set_file(qos, "dds.sec.access.governance", enclave, "governance.p7s");
  set_file(qos, "dds.sec.access.permissions", enclave, "permissions.p7s");
  const dds_entity_t made = dds_create_participant(0, qos, NULL);
  dds_delete_qos(qos);
  if (made < 0) fail("no participant");
  return made;
}

static void write_all(const dds_entity_t *writers, int count, long messages, uint32_t peers) {
  for (int index = 0; index < count; ++index) {
    dds_publication_matched_status_t status = {.current_count = 0};
    for (int tries = 0; tries < SECONDS_TO_MATCH * 100 && status.current_count < peers; ++tries) {
      dds_get_publication_matched_status(writers[index], &status);
      pause_ms(10);
    }
    fprintf(stderr, "writer %d has matched %u\n", index, (unsigned)status.current_count);
  }
  // The other side may learn of the match, or exchange keys, a little later.
  pause_ms(1000);
  for (long message = 0; message < messages; ++message) {
    for (int index = 0; index < count; ++index) {
      char text[64];
      snprintf(text, sizeof text, "%d " MARK, index);
      Text sample = {.data = text};
      dds_write(writers[index], &sample);
    }
    pause_ms(10);
  }
  for (int index = 0; index < count; ++index) dds_wait_for_acks(writers[index], DDS_SECS(5));
}

static void read_all(const dds_entity_t *readers, int count) {
  long read[MOST][MOST] = {{0}};
  // Until the first comes, discovery may take its time.
  for (int idle = -SECONDS_TO_MATCH * 100; idle < IDLE_SECONDS * 100; ++idle) {
    for (int index = 0; index < count; ++index) {
      void *samples[16] = {NULL};
      dds_sample_info_t infos[16];
      const dds_return_t taken = dds_take(readers[index], samples, infos, 16, 16);
      for (dds_return_t at = 0; at < taken; ++at) {
        if (!infos[at].valid_data) continue;
        const Text *text = samples[at];
        const int writer = text->data[0] - '0';
        if (writer < 0 || writer >= MOST) fail("a message of nobody's");
        ++read[index][writer];
        idle = 0;
      }
      if (taken > 0) dds_return_loan(readers[index], samples, taken);
    }
    pause_ms(10);
  }
  for (int index = 0; index < count; ++index) {
    printf("[");
    for (int writer = 0; writer < count; ++writer) {
      printf("%s%ld", writer == 0 ? "" : ", ", read[index][writer]);
    }
    printf("]\n");
  }
}

int main(int argc, char **argv) {
  if (argc < 6 || argc - 5 > MOST) fail("write|read COUNT PEERS LIBRARY ENCLAVE=AEAD ..");
  const bool writes = strcmp(argv[1], "write") == 0;
  const int count = argc - 5;
  dds_entity_t ends[MOST];
  for (int index = 0; index < count; ++index) {
    char *equals = strrchr(argv[5 + index], '=');
    if (equals == NULL) fail("expected ENCLAVE=AEAD");
    *equals = '\0';
    const dds_entity_t in = participant(argv[4], argv[5 + index]);
    const dds_entity_t topic =
        dds_create_topic(in, &std_msgs_msg_dds__String__desc, "rt/several", NULL, NULL);
    dds_qos_t *qos = dds_create_qos();
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
    dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, 1000);
    // Cyclone DDS 0.10 tells the plugin of no property of a participant's.
    dds_qset_prop(qos, "warifu.dds.aead", equals + 1);
    ends[index] = writes ? dds_create_writer(in, topic, qos, NULL)
                         : dds_create_reader(in, topic, qos, NULL);
    dds_delete_qos(qos);
    if (ends[index] < 0) fail("no writer or reader");
  }
  if (writes) {
    write_all(ends, count, atol(argv[2]), (uint32_t)atol(argv[3]));
  } else {
    read_all(ends, count);
  }
  dds_delete(DDS_CYCLONEDDS_HANDLE);
  return 0;
}
