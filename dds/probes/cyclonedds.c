// SPDX-License-Identifier: Apache-2.0 OR MIT
// One-way and ping-pong latency of Cyclone DDS 0.10, with ROS 2's names: topic rt/NAME, type
// std_msgs::msg::dds_::String_, an SROS2 keystore. UDP alone: Debian's build has no shared memory.
//
//   cyclonedds-probe publish|subscribe|ping|pong [--bytes N] [--count N] [--period-us N] ..
//
// Messages, options and output are those of fastdds.cpp; AEADs, which are for Warifu's plugin, and
// the seed are this one's own.
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dds/dds.h"
#include "dds/version.h"
#include "std_msgs_string.h"

#define LARGEST (8u * 1024 * 1024)
#define STAMP 15
#define MOST_SAMPLES 100000000u

typedef std_msgs_msg_dds__String_ Text;

typedef struct {
  const char *role;
  uint32_t bytes;
  uint64_t count;
  uint64_t period_us;
  uint64_t seed;
  uint32_t domain;
  uint64_t timeout_s;
  uint64_t lease_ms;
  const char *topic;
  const char *enclave;
  const char *samples;
  const char *writes;
  const char *crypto_library;
  const char *crypto_init;
  const char *aead;
  const char *answer_aead;
} Options;

static const char usage[] =
    "usage: cyclonedds-probe publish|subscribe|ping|pong [options]\n"
    "  --bytes N        bytes of a message's string, 16 to 8388608 (16)\n"
    "  --count N        messages (1000)\n"
    "  --period-us N    from one message to the next (1000; ping: after the answer)\n"
    "  --seed N         pauses vary by half of the period, by this seed (0: they do not)\n"
    "  --domain N       DDS domain (0)\n"
    "  --topic NAME     rt/NAME on the wire (chatter); answers are on rt/NAME_answer\n"
    "  --enclave DIR    security: KEYSTORE/enclaves/NAME of an SROS2 keystore\n"
    "  --crypto LIBRARY:INIT  the cryptographic plugin (dds_security_crypto:init_crypto)\n"
    "  --aead NAME      of the topic, with Warifu's plugin (what the participant has)\n"
    "  --answer-aead NAME  of the answers' topic\n"
    "  --lease-ms N     liveliness: automatic, with that lease (without end)\n"
    "  --samples FILE   a line each: when it was sent, latency, in ns\n"
    "  --writes FILE    the same of what was written: when, and how long the write took\n"
    "  --timeout S      give up when nothing happens for so long (20)\n";

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("cyclonedds-probe: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(2);
}

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void sleep_until(uint64_t ns) {
  const struct timespec until = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
  }
}

static uint64_t number(const char *option, const char *text, uint64_t low, uint64_t high) {
  char *end = NULL;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || *text == '-' || value < low || value > high) {
    fail("%s is %s: expected a number from %" PRIu64 " to %" PRIu64, option, text, low, high);
  }
  return value;
}

static void parse(Options *options, int argc, char **argv) {
  static char library[4096];
  if (argc < 2 || strcmp(argv[1], "--help") == 0) {
    fputs(usage, argc < 2 ? stderr : stdout);
    exit(argc < 2 ? 2 : 0);
  }
  if (strcmp(argv[1], "--version") == 0) {
    puts("cyclonedds-probe, Cyclone DDS " DDS_VERSION);
    exit(0);
  }
  options->role = argv[1];
  if (strcmp(argv[1], "publish") != 0 && strcmp(argv[1], "subscribe") != 0 &&
      strcmp(argv[1], "ping") != 0 && strcmp(argv[1], "pong") != 0) {
    fail("the role is %s: expected publish, subscribe, ping or pong", argv[1]);
  }
  for (int at = 2; at < argc; at += 2) {
    const char *option = argv[at];
    if (at + 1 == argc) fail("%s: expected an option with its value; see --help", option);
    const char *value = argv[at + 1];
    if (strcmp(option, "--bytes") == 0) {
      options->bytes = (uint32_t)number(option, value, 16, LARGEST);
    } else if (strcmp(option, "--count") == 0) {
      options->count = number(option, value, 1, MOST_SAMPLES);
    } else if (strcmp(option, "--period-us") == 0) {
      options->period_us = number(option, value, 0, 60000000);
    } else if (strcmp(option, "--seed") == 0) {
      options->seed = number(option, value, 0, UINT64_MAX);
    } else if (strcmp(option, "--domain") == 0) {
      options->domain = (uint32_t)number(option, value, 0, 232);
    } else if (strcmp(option, "--timeout") == 0) {
      options->timeout_s = number(option, value, 1, 86400);
    } else if (strcmp(option, "--lease-ms") == 0) {
      options->lease_ms = number(option, value, 10, 3600000);
    } else if (strcmp(option, "--topic") == 0) {
      options->topic = value;
    } else if (strcmp(option, "--enclave") == 0) {
      options->enclave = value;
    } else if (strcmp(option, "--samples") == 0) {
      options->samples = value;
    } else if (strcmp(option, "--writes") == 0) {
      options->writes = value;
    } else if (strcmp(option, "--crypto") == 0) {
      const char *colon = strrchr(value, ':');
      if (colon == NULL || (size_t)(colon - value) >= sizeof library) {
        fail("--crypto is %s: expected LIBRARY:INIT", value);
      }
      memcpy(library, value, (size_t)(colon - value));
      options->crypto_library = library;
      options->crypto_init = colon + 1;
    } else if (strcmp(option, "--aead") == 0) {
      options->aead = value;
    } else if (strcmp(option, "--answer-aead") == 0) {
      options->answer_aead = value;
    } else {
      fail("%s is unknown; see --help", option);
    }
  }
}

// Latencies of what was received.
typedef struct {
  uint64_t sent_ns;
  uint64_t ns;
} Latency;

typedef struct {
  Latency *of;
  size_t count;
  size_t room;
} Latencies;

static void keep(Latencies *all, uint64_t sent_ns, uint64_t ns) {
  if (all->count == all->room) {
    all->room = all->room == 0 ? 1024 : 2 * all->room;
    all->of = realloc(all->of, all->room * sizeof *all->of);
    if (all->of == NULL) fail("out of memory");
  }
  all->of[all->count++] = (Latency){sent_ns, ns};
}

static void set_file(dds_qos_t *qos, const char *property, const char *enclave, const char *name) {
  char path[4096];
  const int length = snprintf(path, sizeof path, "file:%s/%s", enclave, name);
  if (length < 0 || (size_t)length >= sizeof path || access(path + 5, R_OK) != 0) {
    fail("%s/%s cannot be read: expected an enclave of an SROS2 keystore", enclave, name);
  }
  dds_qset_prop(qos, property, path);
}

// The properties of DDS Security's plugins as rmw_cyclonedds sets them.
static void secure(dds_qos_t *qos, const Options *options) {
  dds_qset_prop(qos, "dds.sec.auth.library.path", "dds_security_auth");
  dds_qset_prop(qos, "dds.sec.auth.library.init", "init_authentication");
  dds_qset_prop(qos, "dds.sec.auth.library.finalize", "finalize_authentication");
  dds_qset_prop(qos, "dds.sec.access.library.path", "dds_security_ac");
  dds_qset_prop(qos, "dds.sec.access.library.init", "init_access_control");
  dds_qset_prop(qos, "dds.sec.access.library.finalize", "finalize_access_control");
  dds_qset_prop(qos, "dds.sec.crypto.library.path", options->crypto_library);
  dds_qset_prop(qos, "dds.sec.crypto.library.init", options->crypto_init);
  dds_qset_prop(qos, "dds.sec.crypto.library.finalize", "finalize_crypto");
  set_file(qos, "dds.sec.auth.identity_ca", options->enclave, "identity_ca.cert.pem");
  set_file(qos, "dds.sec.auth.identity_certificate", options->enclave, "cert.pem");
  set_file(qos, "dds.sec.auth.private_key", options->enclave, "key.pem");
  set_file(qos, "dds.sec.access.permissions_ca", options->enclave, "permissions_ca.cert.pem");
  set_file(qos, "dds.sec.access.governance", options->enclave, "governance.p7s");
  set_file(qos, "dds.sec.access.permissions", options->enclave, "permissions.p7s");
}

typedef struct {
  Options options;
  dds_entity_t participant;
  dds_entity_t writer;
  dds_entity_t reader;
  dds_entity_t arrivals;
  uint64_t begun_ns;    // before the participant was made
  uint64_t matched_ns;
  Latencies latencies;
  Latencies writes;
} Probe;

// A write, and how long it took: until the last datagram was given to the kernel, where Cyclone
// sends in the thread that writes.
static bool written(Probe *probe, const Text *text) {
  const uint64_t begun_ns = now_ns();
  const bool done = dds_write(probe->writer, text) == DDS_RETCODE_OK;
  if (done) keep(&probe->writes, begun_ns, now_ns() - begun_ns);
  return done;
}

// SIGTERM ends a wait, and what was seen is reported.
static volatile sig_atomic_t stopped = 0;
static void stop(int signal) {
  (void)signal;
  stopped = 1;
}
// How long a wait does not look for it.
#define LOOKS_EVERY_NS 100000000u

static dds_entity_t topic_on(const Probe *probe, const char *suffix) {
  char name[512];
  snprintf(name, sizeof name, "rt/%s%s", probe->options.topic, suffix);
  const dds_entity_t topic = dds_create_topic(
      probe->participant, &std_msgs_msg_dds__String__desc, name, NULL, NULL);
  if (topic < 0) fail("no topic %s: %s", name, dds_strretcode(-topic));
  return topic;
}

// The property that Warifu's plugin takes an endpoint's AEAD from; others ignore it.
static dds_qos_t *qos_on(const dds_qos_t *common, const char *aead) {
  dds_qos_t *qos = dds_create_qos();
  dds_copy_qos(qos, common);
  if (aead != NULL) dds_qset_prop(qos, "warifu.dds.aead", aead);
  return qos;
}

static void open_probe(Probe *probe) {
  const Options *options = &probe->options;
  const bool answers = strcmp(options->role, "pong") == 0;
  const bool asks = strcmp(options->role, "ping") == 0;
  dds_qos_t *qos = dds_create_qos();
  if (options->enclave != NULL) secure(qos, options);
  probe->begun_ns = now_ns();
  probe->participant = dds_create_participant(options->domain, qos, NULL);
  if (probe->participant < 0) {
    fail("no participant: %s%s", dds_strretcode(-probe->participant),
         options->enclave == NULL ? "" : ": are the enclave's files and the plugins right?");
  }
  dds_reset_qos(qos);
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
  // ROS 2's default is 10, of which a reader that sleeps for a moment loses some.
  dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, 1000);
  if (options->lease_ms != 0) {
    dds_qset_liveliness(qos, DDS_LIVELINESS_AUTOMATIC, DDS_MSECS((int64_t)options->lease_ms));
  }
  if (strcmp(options->role, "subscribe") != 0) {
    dds_qos_t *own = qos_on(qos, answers ? options->answer_aead : options->aead);
    probe->writer = dds_create_writer(probe->participant, topic_on(probe, answers ? "_answer" : ""),
                                      own, NULL);
    dds_delete_qos(own);
    if (probe->writer < 0) fail("no writer: %s", dds_strretcode(-probe->writer));
  }
  if (strcmp(options->role, "publish") != 0) {
    dds_qos_t *own = qos_on(qos, asks ? options->answer_aead : options->aead);
    probe->reader = dds_create_reader(probe->participant, topic_on(probe, asks ? "_answer" : ""),
                                      own, NULL);
    dds_delete_qos(own);
    if (probe->reader < 0) fail("no reader: %s", dds_strretcode(-probe->reader));
    const dds_entity_t condition = dds_create_readcondition(probe->reader, DDS_ANY_STATE);
    probe->arrivals = dds_create_waitset(probe->participant);
    if (dds_waitset_attach(probe->arrivals, condition, 0) < 0) fail("no waitset");
  }
  dds_delete_qos(qos);
}

static bool matched(Probe *probe) {
  const uint64_t until = now_ns() + probe->options.timeout_s * 1000000000u;
  while (now_ns() < until && !stopped) {
    dds_publication_matched_status_t writes = {.current_count = 1};
    dds_subscription_matched_status_t reads = {.current_count = 1};
    if (probe->writer > 0) dds_get_publication_matched_status(probe->writer, &writes);
    if (probe->reader > 0) dds_get_subscription_matched_status(probe->reader, &reads);
    if (writes.current_count > 0 && reads.current_count > 0) {
      probe->matched_ns = now_ns();
      // The other side may learn of the match, or exchange keys, a little later.
      const bool first = strcmp(probe->options.role, "publish") == 0 ||
                         strcmp(probe->options.role, "ping") == 0;
      if (first) sleep_until(now_ns() + 1000000000u);
      return true;
    }
    sleep_until(now_ns() + 1000000u);
  }
  return false;
}

// Waits for messages until `until`, or less; answers them as a pong; returns how many there were of
// those that were sent at `sent_ns`, if that is not 0.
static uint64_t take(Probe *probe, uint64_t until, bool answers, uint64_t sent_ns) {
  const uint64_t now = now_ns();
  if (now >= until) return 0;
  const uint64_t wait_ns = until - now < LOOKS_EVERY_NS ? until - now : LOOKS_EVERY_NS;
  if (dds_waitset_wait(probe->arrivals, NULL, 0, (dds_duration_t)wait_ns) < 0) return 0;
  void *samples[16] = {NULL};
  dds_sample_info_t infos[16];
  const dds_return_t count = dds_take(probe->reader, samples, infos, 16, 16);
  uint64_t taken = 0;
  for (dds_return_t index = 0; index < count; ++index) {
    const uint64_t at = now_ns();
    Text *text = samples[index];
    if (!infos[index].valid_data || strlen(text->data) < STAMP) continue;
    if (answers) written(probe, text);
    char digits[STAMP + 1] = {0};
    memcpy(digits, text->data, STAMP);
    const uint64_t stamp = strtoull(digits, NULL, 16);
    // An answer that comes after it was given up for lost.
    if (sent_ns != 0 && stamp != sent_ns) continue;
    keep(&probe->latencies, stamp, at - stamp);
    ++taken;
  }
  if (count > 0) dds_return_loan(probe->reader, samples, count);
  return taken;
}

// SplitMix64's next; a pause from half of the period to one and a half.
static uint64_t pause_ns(const Options *options, uint64_t *random) {
  const uint64_t period_ns = options->period_us * 1000u;
  if (options->seed == 0) return period_ns;
  uint64_t z = *random += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return period_ns / 2 + (uint64_t)((double)period_ns * ((double)(z >> 11) / 9007199254740992.0));
}

static uint64_t send_all(Probe *probe, bool asks) {
  const Options *options = &probe->options;
  char *string = malloc(options->bytes);
  if (string == NULL) fail("out of memory");
  memset(string, 'x', options->bytes - 1);
  string[options->bytes - 1] = '\0';
  Text text = {.data = string};
  uint64_t sent = 0;
  uint64_t next = now_ns(), random = options->seed;
  for (uint64_t index = 0; index < options->count && !stopped; ++index) {
    next = (asks ? now_ns() : next) + pause_ns(options, &random);
    sleep_until(next);
    char digits[STAMP + 2];
    const uint64_t sent_ns = now_ns();
    snprintf(digits, sizeof digits, "%0*" PRIx64, STAMP, sent_ns);
    memcpy(string, digits, STAMP);
    if (written(probe, &text)) ++sent;
    if (!asks) continue;
    const uint64_t until = now_ns() + options->timeout_s * 1000000000u;
    while (take(probe, until, false, sent_ns) == 0 && now_ns() < until && !stopped) {
    }
  }
  dds_wait_for_acks(probe->writer, DDS_SECS((int64_t)options->timeout_s));
  free(string);
  return sent;
}

static void receive(Probe *probe, bool answers) {
  const uint64_t idle_ns = probe->options.timeout_s * 1000000000u;
  uint64_t until = now_ns() + idle_ns;
  while (probe->latencies.count < probe->options.count && now_ns() < until && !stopped) {
    if (take(probe, until, answers, 0) > 0) until = now_ns() + idle_ns;
  }
  // What was acknowledged, and not taken yet; not for ever, where the other end goes on.
  until = now_ns() + idle_ns;
  while (now_ns() < until && take(probe, now_ns() + LOOKS_EVERY_NS, answers, 0) > 0) {
  }
  if (answers) dds_wait_for_acks(probe->writer, DDS_SECS(2));
}

static int by_value(const void *a, const void *b) {
  const uint64_t x = ((const Latency *)a)->ns, y = ((const Latency *)b)->ns;
  return x < y ? -1 : x > y;
}

// A line each, to a file if there is one.
static void list(const char *path, const Latencies *all) {
  if (path == NULL) return;
  FILE *file = fopen(path, "w");
  if (file == NULL) fail("%s cannot be written", path);
  for (size_t index = 0; index < all->count; ++index) {
    fprintf(file, "%" PRIu64 " %" PRIu64 "\n", all->of[index].sent_ns, all->of[index].ns);
  }
  if (fclose(file) != 0) fail("%s cannot be written", path);
}

static void report(Probe *probe, uint64_t sent) {
  const Options *options = &probe->options;
  Latencies *all = &probe->latencies;
  list(options->samples, all);
  list(options->writes, &probe->writes);
  printf("{\"probe\":\"cyclonedds\",\"role\":\"%s\",\"secured\":%s,\"bytes\":%" PRIu32
         ",\"discovery_ns\":%" PRIu64 ",\"sent\":%" PRIu64 ",\"received\":%zu",
         options->role, options->enclave == NULL ? "false" : "true", options->bytes,
         probe->matched_ns - probe->begun_ns, sent, all->count);
  if (all->count > 0) {
    qsort(all->of, all->count, sizeof *all->of, by_value);
    const double last = (double)(all->count - 1);
    printf(",\"%s\":{\"minimum\":%" PRIu64 ",\"median\":%" PRIu64 ",\"p90\":%" PRIu64
           ",\"p99\":%" PRIu64 ",\"maximum\":%" PRIu64 "}",
           strcmp(options->role, "ping") == 0 ? "round_trip_ns" : "one_way_ns", all->of[0].ns,
           all->of[(size_t)(0.5 * last + 0.5)].ns, all->of[(size_t)(0.9 * last + 0.5)].ns,
           all->of[(size_t)(0.99 * last + 0.5)].ns, all->of[all->count - 1].ns);
  }
  printf("}\n");
}

int main(int argc, char **argv) {
  Probe probe = {.options = {.bytes = 16,
                             .count = 1000,
                             .period_us = 1000,
                             .timeout_s = 20,
                             .topic = "chatter",
                             .crypto_library = "dds_security_crypto",
                             .crypto_init = "init_crypto"}};
  parse(&probe.options, argc, argv);
  signal(SIGTERM, stop);
  open_probe(&probe);
  if (!matched(&probe)) {
    fprintf(stderr, "cyclonedds-probe: nobody matched within %" PRIu64 " s\n",
            probe.options.timeout_s);
    return 1;
  }
  uint64_t sent = 0;
  if (strcmp(probe.options.role, "publish") == 0) sent = send_all(&probe, false);
  if (strcmp(probe.options.role, "ping") == 0) sent = send_all(&probe, true);
  if (strcmp(probe.options.role, "subscribe") == 0) receive(&probe, false);
  if (strcmp(probe.options.role, "pong") == 0) receive(&probe, true);
  report(&probe, sent);
  free(probe.latencies.of);
  free(probe.writes.of);
  dds_delete(probe.participant);
  return 0;
}
