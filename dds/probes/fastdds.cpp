// SPDX-License-Identifier: Apache-2.0 OR MIT
// One-way and ping-pong latency of Fast DDS 2.9, with ROS 2's names: topic rt/NAME, type
// std_msgs::msg::dds_::String_, an SROS2 keystore. UDP alone, so that what is timed is on the wire.
//
//   fastdds-probe publish|subscribe|ping|pong [--bytes N] [--count N] [--period-us N] ..
//
// A message of N bytes is a string of N - 1 characters and the zero that CDR puts behind it; its
// first 15 are CLOCK_MONOTONIC in ns as it was sent, hexadecimal (a hundred years of uptime fit).
// Standard output is one JSON object. Options and output are those of cyclonedds.c; addresses, which
// Cyclone DDS has in its configuration, are this one's own. No profile of Fast DDS's is read without
// --profiles: a file in the current folder would decide what root writes, and where.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

using namespace eprosima::fastdds::dds;
using eprosima::fastdds::rtps::UDPv4TransportDescriptor;
using eprosima::fastrtps::rtps::InstanceHandle_t;
using eprosima::fastrtps::rtps::IPLocator;
using eprosima::fastrtps::rtps::Locator_t;
using eprosima::fastrtps::rtps::SerializedPayload_t;

namespace {

constexpr uint32_t kLargest = 8 * 1024 * 1024;
constexpr uint32_t kStamp = 15;
constexpr uint32_t kSocketBytes = 4 * 1024 * 1024;
// The encapsulation header (4), the length of the string (4), the zero behind it and padding.
constexpr uint32_t kOverhead = 4 + 4 + 1 + 3;

// What Fast DDS takes settings from that are not this program's own.
const char* const kProfiles[] = {"FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_ENVIRONMENT_FILE",
                                 "FASTDDS_BUILTIN_TRANSPORTS", "ROS_DISCOVERY_SERVER"};

uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "fastdds-probe: %s\n", what.c_str());
  std::exit(2);
}

// std_msgs/msg/String as rosidl_typesupport_fastrtps serialises it: one string in CDR.
class StringType : public TopicDataType {
 public:
  // Buffers are made for `bytes`; a longer message makes them grow.
  explicit StringType(uint32_t bytes) {
    setName("std_msgs::msg::dds_::String_");
    m_typeSize = bytes + kOverhead;
    m_isGetKeyDefined = false;
  }

  bool serialize(void* data, SerializedPayload_t* payload) override {
    eprosima::fastcdr::FastBuffer buffer(reinterpret_cast<char*>(payload->data),
                                         payload->max_size);
    eprosima::fastcdr::Cdr cdr(buffer, eprosima::fastcdr::Cdr::DEFAULT_ENDIAN,
                               eprosima::fastcdr::Cdr::DDS_CDR);
    payload->encapsulation =
        cdr.endianness() == eprosima::fastcdr::Cdr::BIG_ENDIANNESS ? CDR_BE : CDR_LE;
    try {
      cdr.serialize_encapsulation();
      cdr << *static_cast<std::string*>(data);
    } catch (const eprosima::fastcdr::exception::NotEnoughMemoryException&) {
      return false;
    }
    payload->length = static_cast<uint32_t>(cdr.getSerializedDataLength());
    return true;
  }

  bool deserialize(SerializedPayload_t* payload, void* data) override {
    eprosima::fastcdr::FastBuffer buffer(reinterpret_cast<char*>(payload->data), payload->length);
    eprosima::fastcdr::Cdr cdr(buffer, eprosima::fastcdr::Cdr::DEFAULT_ENDIAN,
                               eprosima::fastcdr::Cdr::DDS_CDR);
    try {
      cdr.read_encapsulation();
      cdr >> *static_cast<std::string*>(data);
    } catch (const eprosima::fastcdr::exception::Exception&) {
      return false;
    }
    return true;
  }

  std::function<uint32_t()> getSerializedSizeProvider(void* data) override {
    return [data] {
      return static_cast<uint32_t>(static_cast<std::string*>(data)->size()) + kOverhead;
    };
  }

  void* createData() override { return new std::string; }
  void deleteData(void* data) override { delete static_cast<std::string*>(data); }
  bool getKey(void*, InstanceHandle_t*, bool) override { return false; }
};

struct Options {
  std::string role;
  uint32_t bytes = 16;
  uint64_t count = 1000;
  uint64_t period_us = 1000;
  uint64_t seed = 0;
  uint32_t domain = 0;
  double timeout_s = 20;
  std::string topic = "chatter";
  std::string enclave;
  std::string samples;
  std::string address;
  std::string peer;
  uint64_t lease_ms = 0;
  std::string key_bits = "256";
  bool asynchronous = false;
  bool profiles = false;
};

const char kUsage[] =
    "usage: fastdds-probe publish|subscribe|ping|pong [options]\n"
    "  --bytes N        bytes of a message's string, 16 to 8388608 (16)\n"
    "  --count N        messages (1000)\n"
    "  --period-us N    from one message to the next (1000; ping: after the answer)\n"
    "  --seed N         pauses vary by half of the period, by this seed (0: they do not)\n"
    "  --domain N       DDS domain (0)\n"
    "  --topic NAME     rt/NAME on the wire (chatter); answers are on rt/NAME_answer\n"
    "  --enclave DIR    security: KEYSTORE/enclaves/NAME of an SROS2 keystore\n"
    "  --address A      use this address's interface alone, and no multicast; with --peer\n"
    "  --peer A         the other end's address\n"
    "  --key-bits N     security: 128 or 256 (256)\n"
    "  --lease-ms N     liveliness: automatic, with that lease (without end)\n"
    "  --asynchronous   publish from the middleware's own thread\n"
    "  --profiles       read FASTRTPS_DEFAULT_PROFILES_FILE and the folder's profiles; not as root\n"
    "                   unless all of them are yours\n"
    "  --samples FILE   a line each: when it was sent, latency, in ns\n"
    "  --timeout S      give up when nothing happens for so long (20)\n";

uint64_t number(const char* option, const char* text, uint64_t low, uint64_t high) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || *text == '-' || value < low || value > high) {
    fail(std::string(option) + " is " + text + ": expected a number from " +
         std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

Options parse(int argc, char** argv) {
  Options options;
  if (argc < 2 || std::strcmp(argv[1], "--help") == 0) {
    std::fputs(kUsage, argc < 2 ? stderr : stdout);
    std::exit(argc < 2 ? 2 : 0);
  }
  if (std::strcmp(argv[1], "--version") == 0) {
    std::printf("fastdds-probe, Fast DDS %s\n", FASTRTPS_VERSION_STR);
    std::exit(0);
  }
  options.role = argv[1];
  const std::vector<std::string> roles = {"publish", "subscribe", "ping", "pong"};
  if (std::find(roles.begin(), roles.end(), options.role) == roles.end()) {
    fail("the role is " + options.role + ": expected publish, subscribe, ping or pong");
  }
  for (int at = 2; at < argc; ++at) {
    const std::string option = argv[at];
    if (option == "--asynchronous" || option == "--profiles") {
      (option == "--profiles" ? options.profiles : options.asynchronous) = true;
      continue;
    }
    if (at + 1 == argc) fail(option + ": expected an option with its value; see --help");
    const char* value = argv[++at];
    if (option == "--bytes") {
      options.bytes = static_cast<uint32_t>(number("--bytes", value, 16, kLargest));
    } else if (option == "--count") {
      options.count = number("--count", value, 1, 100000000);
    } else if (option == "--period-us") {
      options.period_us = number("--period-us", value, 0, 60000000);
    } else if (option == "--seed") {
      options.seed = number("--seed", value, 0, UINT64_MAX);
    } else if (option == "--domain") {
      options.domain = static_cast<uint32_t>(number("--domain", value, 0, 232));
    } else if (option == "--timeout") {
      options.timeout_s = static_cast<double>(number("--timeout", value, 1, 86400));
    } else if (option == "--topic") {
      options.topic = value;
    } else if (option == "--enclave") {
      options.enclave = value;
    } else if (option == "--lease-ms") {
      options.lease_ms = number("--lease-ms", value, 10, 3600000);
    } else if (option == "--key-bits") {
      options.key_bits = value;
      if (options.key_bits != "128" && options.key_bits != "256") {
        fail("--key-bits is " + options.key_bits + ": expected 128 or 256");
      }
    } else if (option == "--samples") {
      options.samples = value;
    } else if (option == "--address" || option == "--peer") {
      if (!IPLocator::isIPv4(value)) fail(option + " is " + value + ": expected an IPv4 address");
      (option == "--address" ? options.address : options.peer) = value;
    } else {
      fail(option + " is unknown; see --help");
    }
  }
  if (options.address.empty() != options.peer.empty()) fail("--address and --peer go together");
  return options;
}

// SIGTERM ends a wait, and what was seen is reported.
volatile std::sig_atomic_t stopped = 0;
// How long a wait does not look for it.
constexpr std::chrono::milliseconds kLooksEvery(100);

// What both listeners tell the main thread.
struct Events {
  std::mutex mutex;
  std::condition_variable changed;
  int writers_matched = 0;
  int readers_matched = 0;
  // When it was sent, and how long it took.
  std::vector<std::pair<uint64_t, uint64_t>> latencies_ns;
  uint64_t last_ns = now_ns();
  // When the message was sent that was answered last.
  uint64_t answered = 0;
  // When the message was sent whose answer alone counts; 0: all do.
  uint64_t awaited = 0;
};

void stamp(std::string& text, uint64_t at_ns) {
  char digits[kStamp + 2];
  std::snprintf(digits, sizeof digits, "%0*llx", static_cast<int>(kStamp),
                static_cast<unsigned long long>(at_ns));
  text.replace(0, kStamp, digits, kStamp);
}

class Writes : public DataWriterListener {
 public:
  explicit Writes(Events& events) : events_(events) {}
  void on_publication_matched(DataWriter*, const PublicationMatchedStatus& status) override {
    const std::lock_guard<std::mutex> lock(events_.mutex);
    events_.writers_matched = status.current_count;
    events_.changed.notify_all();
  }

 private:
  Events& events_;
};

class Reads : public DataReaderListener {
 public:
  Reads(Events& events, DataWriter* answers) : events_(events), answers_(answers) {}

  void on_subscription_matched(DataReader*, const SubscriptionMatchedStatus& status) override {
    const std::lock_guard<std::mutex> lock(events_.mutex);
    events_.readers_matched = status.current_count;
    events_.changed.notify_all();
  }

  void on_data_available(DataReader* reader) override {
    SampleInfo info;
    while (reader->take_next_sample(&text_, &info) == ReturnCode_t::RETCODE_OK) {
      const uint64_t at_ns = now_ns();
      if (!info.valid_data || text_.size() < kStamp) continue;
      if (answers_ != nullptr) answers_->write(&text_);
      const uint64_t sent_ns = std::strtoull(text_.substr(0, kStamp).c_str(), nullptr, 16);
      const std::lock_guard<std::mutex> lock(events_.mutex);
      // An answer that comes after it was given up for lost.
      if (events_.awaited != 0 && sent_ns != events_.awaited) continue;
      events_.latencies_ns.emplace_back(sent_ns, at_ns - sent_ns);
      events_.last_ns = at_ns;
      events_.answered = sent_ns;
      events_.changed.notify_all();
    }
  }

 private:
  Events& events_;
  DataWriter* answers_;
  std::string text_;
};

// Of a participant for its RTPS messages, of a writer or reader for its own.
const char kKeyBits[] = "dds.sec.crypto.keysize";

void secure(DomainParticipantQos& qos, const std::string& enclave) {
  auto& properties = qos.properties().properties();
  const auto set = [&](const char* name, const std::string& value) {
    properties.emplace_back(name, value);
  };
  const auto file = [&](const char* name) {
    const std::string path = enclave + "/" + name;
    if (access(path.c_str(), R_OK) != 0) {
      fail(path + " cannot be read: expected an enclave of an SROS2 keystore");
    }
    return "file://" + path;
  };
  set("dds.sec.auth.plugin", "builtin.PKI-DH");
  set("dds.sec.auth.builtin.PKI-DH.identity_ca", file("identity_ca.cert.pem"));
  set("dds.sec.auth.builtin.PKI-DH.identity_certificate", file("cert.pem"));
  set("dds.sec.auth.builtin.PKI-DH.private_key", file("key.pem"));
  set("dds.sec.access.plugin", "builtin.Access-Permissions");
  set("dds.sec.access.builtin.Access-Permissions.permissions_ca",
      file("permissions_ca.cert.pem"));
  set("dds.sec.access.builtin.Access-Permissions.governance", file("governance.p7s"));
  set("dds.sec.access.builtin.Access-Permissions.permissions", file("permissions.p7s"));
  set("dds.sec.crypto.plugin", "builtin.AES-GCM-GMAC");
}

// On one interface and without multicast: a peer is asked at the ports of the first few participants.
void unicast(DomainParticipantQos& qos, UDPv4TransportDescriptor& udp, const Options& options) {
  const auto locator = [](const std::string& address) {
    Locator_t made;
    made.kind = LOCATOR_KIND_UDPv4;
    IPLocator::setIPv4(made, address);
    return made; // of port 0, which stands for the domain's
  };
  udp.interfaceWhiteList.push_back(options.address);
  auto& protocol = qos.wire_protocol();
  protocol.builtin.metatrafficUnicastLocatorList.push_back(locator(options.address));
  protocol.default_unicast_locator_list.push_back(locator(options.address));
  protocol.builtin.initialPeersList.push_back(locator(options.peer));
}

template <typename Qos>
void reliable(Qos& qos, const Options& options) {
  if (!options.enclave.empty()) {
    qos.properties().properties().emplace_back(kKeyBits, options.key_bits);
  }
  if (options.lease_ms != 0) {
    const auto of_ms = [](uint64_t ms) {
      return eprosima::fastrtps::Duration_t(static_cast<int32_t>(ms / 1000),
                                            static_cast<uint32_t>(ms % 1000 * 1000000));
    };
    qos.liveliness().kind = AUTOMATIC_LIVELINESS_QOS;
    qos.liveliness().lease_duration = of_ms(options.lease_ms);
    qos.liveliness().announcement_period = of_ms(options.lease_ms / 2);
  }
  qos.reliability().kind = RELIABLE_RELIABILITY_QOS;
  qos.durability().kind = VOLATILE_DURABILITY_QOS;
  qos.history().kind = KEEP_LAST_HISTORY_QOS;
  // ROS 2's default is 10, of which a reader that sleeps for a moment loses some.
  qos.history().depth = 1000;
  qos.resource_limits().max_samples_per_instance = 1000;
  qos.data_sharing().off();
  qos.endpoint().history_memory_policy =
      eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
}

// SplitMix64's next; a pause from half of the period to one and a half.
std::chrono::nanoseconds pause(const Options& options, uint64_t& random) {
  const uint64_t period_ns = options.period_us * 1000u;
  if (options.seed == 0) return std::chrono::nanoseconds(period_ns);
  uint64_t z = random += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  const double share = static_cast<double>(z >> 11) / 9007199254740992.0;
  const double varying = static_cast<double>(period_ns) * share;
  return std::chrono::nanoseconds(period_ns / 2 + static_cast<uint64_t>(varying));
}

class Probe {
 public:
  explicit Probe(const Options& options)
      : options_(options), writes_(events_), type_(new StringType(options.bytes)) {
    auto* factory = DomainParticipantFactory::get_instance();
    // As programs begin whose users configure them by FASTRTPS_DEFAULT_PROFILES_FILE.
    if (options.profiles) factory->load_profiles();
    DomainParticipantQos qos = factory->get_default_participant_qos();
    qos.name("warifu");
    qos.transport().use_builtin_transports = false;
    auto udp = std::make_shared<UDPv4TransportDescriptor>();
    // As much as the kernel gives (net.core.rmem_max, wmem_max): a message of 4 MB goes at once.
    udp->sendBufferSize = kSocketBytes;
    udp->receiveBufferSize = kSocketBytes;
    if (!options.address.empty()) unicast(qos, *udp, options);
    qos.transport().user_transports.push_back(udp);
    if (!options.enclave.empty()) {
      secure(qos, options.enclave);
      qos.properties().properties().emplace_back(kKeyBits, options.key_bits);
    }
    const auto& properties = qos.properties().properties();
    secured_ = std::any_of(properties.begin(), properties.end(), [](const auto& property) {
      return property.name() == "dds.sec.auth.plugin";
    });
    begun_ns_ = now_ns();
    participant_ = factory->create_participant(options.domain, qos);
    if (participant_ == nullptr) {
      fail("no participant" + std::string(!secured_ ? ""
                                              : ": the enclave's files were refused, or this "
                                                "Fast DDS was built without security"));
    }
    type_.register_type(participant_);
    const bool answers = options.role == "pong";
    const bool asks = options.role == "ping";
    const std::string there = "rt/" + options.topic;
    const std::string back = there + "_answer";
    if (options.role != "subscribe") write_on(answers ? back : there);
    if (options.role != "publish") read_on(asks ? back : there, answers ? writer_ : nullptr);
  }

  ~Probe() {
    participant_->delete_contained_entities();
    DomainParticipantFactory::get_instance()->delete_participant(participant_);
  }

  int run() {
    if (!matched()) {
      std::fprintf(stderr, "fastdds-probe: nobody matched within %g s\n", options_.timeout_s);
      return 1;
    }
    uint64_t sent = 0;
    if (options_.role == "publish" || options_.role == "ping") {
      sent = send_all(options_.role == "ping");
    }
    if (options_.role == "subscribe" || options_.role == "pong") receive();
    report(sent);
    return 0;
  }

 private:
  void write_on(const std::string& name) {
    Topic* topic = participant_->create_topic(name, type_.get_type_name(), TOPIC_QOS_DEFAULT);
    DataWriterQos qos;
    reliable(qos, options_);
    qos.publish_mode().kind =
        options_.asynchronous ? ASYNCHRONOUS_PUBLISH_MODE : SYNCHRONOUS_PUBLISH_MODE;
    Publisher* publisher = participant_->create_publisher(PUBLISHER_QOS_DEFAULT);
    writer_ = publisher->create_datawriter(topic, qos, &writes_);
    if (writer_ == nullptr) fail("no writer on " + name + ": do the permissions allow it?");
  }

  void read_on(const std::string& name, DataWriter* answers) {
    Topic* topic = participant_->create_topic(name, type_.get_type_name(), TOPIC_QOS_DEFAULT);
    DataReaderQos qos;
    reliable(qos, options_);
    reads_ = std::make_unique<Reads>(events_, answers);
    Subscriber* subscriber = participant_->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
    if (subscriber->create_datareader(topic, qos, reads_.get()) == nullptr) {
      fail("no reader on " + name + ": do the permissions allow it?");
    }
  }

  std::chrono::duration<double> patience() const {
    return std::chrono::duration<double>(options_.timeout_s);
  }

  // Waits until `there` is so, by events; false if it was not in time, or SIGTERM came.
  template <typename There>
  bool wait(std::unique_lock<std::mutex>& lock, There there) {
    const auto until = std::chrono::steady_clock::now() + patience();
    while (!there()) {
      if (stopped || std::chrono::steady_clock::now() >= until) return false;
      events_.changed.wait_for(lock, kLooksEvery);
    }
    return true;
  }

  bool matched() {
    std::unique_lock<std::mutex> lock(events_.mutex);
    const bool there = wait(lock, [&] {
      return (options_.role == "subscribe" || events_.writers_matched > 0) &&
             (options_.role == "publish" || events_.readers_matched > 0);
    });
    matched_ns_ = now_ns();
    events_.last_ns = matched_ns_;
    lock.unlock();
    // The other side may learn of the match, or exchange keys, a little later.
    if (there && options_.role != "subscribe" && options_.role != "pong") {
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    return there;
  }

  uint64_t send_all(bool asks) {
    std::string text(options_.bytes - 1, 'x');
    uint64_t sent = 0, random = options_.seed;
    auto next = std::chrono::steady_clock::now();
    for (uint64_t index = 0; index < options_.count && !stopped; ++index) {
      if (asks) next = std::chrono::steady_clock::now();
      next += pause(options_, random);
      std::this_thread::sleep_until(next);
      const uint64_t sent_ns = now_ns();
      stamp(text, sent_ns);
      if (asks) {
        const std::lock_guard<std::mutex> lock(events_.mutex);
        events_.awaited = sent_ns;
      }
      if (writer_->write(&text)) ++sent;
      if (!asks) continue;
      std::unique_lock<std::mutex> lock(events_.mutex);
      wait(lock, [&] { return events_.answered == sent_ns; });
    }
    writer_->wait_for_acknowledgments({static_cast<int32_t>(options_.timeout_s), 0});
    return sent;
  }

  void receive() {
    std::unique_lock<std::mutex> lock(events_.mutex);
    const auto idle_ns = static_cast<uint64_t>(options_.timeout_s * 1e9);
    while (events_.latencies_ns.size() < options_.count && !stopped &&
           now_ns() - events_.last_ns < idle_ns) {
      events_.changed.wait_for(lock, kLooksEvery);
    }
    // What was acknowledged, and not taken yet; not for ever, where the other end goes on.
    const uint64_t ends_ns = now_ns() + idle_ns;
    for (size_t before = SIZE_MAX; before != events_.latencies_ns.size() && now_ns() < ends_ns;) {
      before = events_.latencies_ns.size();
      events_.changed.wait_for(lock, kLooksEvery);
    }
    // What was answered last is still on its way.
    lock.unlock();
    if (writer_ != nullptr) writer_->wait_for_acknowledgments({2, 0});
  }

  void report(uint64_t sent) {
    const std::lock_guard<std::mutex> lock(events_.mutex);
    std::vector<uint64_t> sorted;
    for (const auto& [sent_ns, ns] : events_.latencies_ns) sorted.push_back(ns);
    if (!options_.samples.empty()) {
      std::ofstream file(options_.samples);
      for (const auto& [at_ns, ns] : events_.latencies_ns) file << at_ns << ' ' << ns << '\n';
      if (!file.flush()) fail(options_.samples + " cannot be written");
    }
    std::sort(sorted.begin(), sorted.end());
    std::printf("{\"probe\":\"fastdds\",\"role\":\"%s\",\"secured\":%s,\"bytes\":%u,"
                "\"discovery_ns\":%llu,\"sent\":%llu,\"received\":%zu",
                options_.role.c_str(), secured_ ? "true" : "false", options_.bytes,
                static_cast<unsigned long long>(matched_ns_ - begun_ns_),
                static_cast<unsigned long long>(sent), sorted.size());
    // What a pong sees is the way there; what a ping sees, there and back.
    if (!sorted.empty()) {
      const auto at = [&](double share) {
        return static_cast<unsigned long long>(
            sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)]);
      };
      std::printf(",\"%s\":{\"minimum\":%llu,\"median\":%llu,\"p90\":%llu,\"p99\":%llu,"
                  "\"maximum\":%llu}",
                  options_.role == "ping" ? "round_trip_ns" : "one_way_ns", at(0), at(0.5), at(0.9),
                  at(0.99), at(1));
    }
    std::printf("}\n");
  }

  Options options_;
  Events events_;
  Writes writes_;
  std::unique_ptr<Reads> reads_;
  TypeSupport type_;
  bool secured_ = false;
  uint64_t begun_ns_ = 0;  // before the participant was made
  uint64_t matched_ns_ = 0;
  DomainParticipant* participant_ = nullptr;
  DataWriter* writer_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (!options.profiles) {
    for (const char* name : kProfiles) unsetenv(name);
    setenv("SKIP_DEFAULT_XML_FILE", "1", 1);
  }
  std::signal(SIGTERM, [](int) { stopped = 1; });
  Probe probe(options);
  return probe.run();
}
