// SPDX-License-Identifier: Apache-2.0 OR MIT
// The probe for Cyclone DDS: `cyclone ping SECONDS PAYLOAD_BYTES COUNT` or `cyclone pong SECONDS`.
// Ping writes a sample, waits for it to come back, and prints a line of JSON for each: its number,
// and the times of both ways in ns; at the end how many were sent and came back. It ends when COUNT
// have, or after SECONDS. Security is configured by CYCLONEDDS_URI.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dds/dds.h"
#include "sample.h"

// Of a ping that was lost, or that nobody listens to yet.
#define PATIENCE_MS 200

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static dds_entity_t checked(dds_entity_t entity, const char *what) {
  if (entity < 0) {
    fprintf(stderr, "cyclone: %s: %s\n", what, dds_strretcode(-entity));
    exit(1);
  }
  return entity;
}

// The next sample, if one comes in time.
static bool take(dds_entity_t waitset, dds_entity_t reader, warifu_Sample **sample, int wait_ms) {
  const uint64_t deadline = now_ns() + (uint64_t)wait_ms * 1000000u;
  while (true) {
    dds_sample_info_t info;
    void *samples[1] = {*sample};
    if (checked(dds_take(reader, samples, &info, 1, 1), "dds_take") > 0) {
      *sample = samples[0];
      if (info.valid_data) {
        return true;
      }
      continue;
    }
    const uint64_t now = now_ns();
    if (now >= deadline) {
      return false;
    }
    dds_attach_t triggered;
    dds_waitset_wait(waitset, &triggered, 1, (dds_duration_t)(deadline - now));
  }
}

int main(int argc, char **argv) {
  const bool pings = argc == 5 && strcmp(argv[1], "ping") == 0;
  if (!pings && !(argc == 3 && strcmp(argv[1], "pong") == 0)) {
    fprintf(stderr, "usage: cyclone ping SECONDS PAYLOAD_BYTES COUNT | cyclone pong SECONDS\n");
    return 2;
  }
  const uint64_t end = now_ns() + (uint64_t)(atof(argv[2]) * 1e9);
  const uint32_t bytes = pings ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
  const uint32_t count = pings ? (uint32_t)strtoul(argv[4], NULL, 10) : 0;

  const dds_entity_t domain = checked(dds_create_participant(0, NULL, NULL), "participant");
  const dds_topic_descriptor_t *type = &warifu_Sample_desc;
  const dds_entity_t there =
      checked(dds_create_topic(domain, type, "rt/warifu_ping", NULL, NULL), "topic");
  const dds_entity_t back =
      checked(dds_create_topic(domain, type, "rt/warifu_pong", NULL, NULL), "topic");
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
  dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, 1);
  const dds_entity_t writer =
      checked(dds_create_writer(domain, pings ? there : back, qos, NULL), "writer");
  const dds_entity_t reader =
      checked(dds_create_reader(domain, pings ? back : there, qos, NULL), "reader");
  const dds_entity_t waitset = checked(dds_create_waitset(domain), "waitset");
  dds_set_status_mask(reader, DDS_DATA_AVAILABLE_STATUS);
  dds_waitset_attach(waitset, reader, reader);

  warifu_Sample *sample = warifu_Sample__alloc();
  uint32_t sent = 0, received = 0;
  if (pings) {
    warifu_Sample out = {.payload = {._length = bytes, ._maximum = bytes, ._release = true}};
    out.payload._buffer = malloc(bytes ? bytes : 1);
    memset(out.payload._buffer, 0xee, bytes);
    while (now_ns() < end && received < count) {
      dds_publication_matched_status_t writes;
      dds_subscription_matched_status_t reads;
      dds_get_publication_matched_status(writer, &writes);
      dds_get_subscription_matched_status(reader, &reads);
      if (writes.current_count == 0 || reads.current_count == 0) {
        dds_sleepfor(DDS_MSECS(10));
        continue;
      }
      out.number = ++sent;
      const uint64_t begun = out.sent_ns = now_ns();
      checked(dds_write(writer, &out), "dds_write");
      while (take(waitset, reader, &sample, PATIENCE_MS)) {
        const uint64_t arrived = now_ns();
        if (sample->number != sent) {
          continue;
        }
        received++;
        // The one that answered has put its own time in.
        printf("{\"number\":%u,\"there_ns\":%llu,\"back_ns\":%llu}\n", sent,
               (unsigned long long)(sample->sent_ns - begun),
               (unsigned long long)(arrived - sample->sent_ns));
        break;
      }
      dds_sleepfor(DDS_MSECS(1));
    }
    free(out.payload._buffer);
  } else {
    while (now_ns() < end) {
      if (take(waitset, reader, &sample, 100)) {
        received++;
        sample->sent_ns = now_ns();
        checked(dds_write(writer, sample), "dds_write");
        sent++;
      }
    }
  }
  printf("{\"sent\":%u,\"received\":%u}\n", sent, received);
  warifu_Sample_free(sample, DDS_FREE_ALL);
  dds_delete_qos(qos);
  dds_delete(domain);
  return received > 0 ? 0 : 1;
}
