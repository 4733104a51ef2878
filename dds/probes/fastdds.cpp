// SPDX-License-Identifier: Apache-2.0 OR MIT
// The probe for Fast DDS: `fastdds ping SECONDS PAYLOAD_BYTES COUNT [ENCLAVE]` or `fastdds pong
// SECONDS [ENCLAVE]`, where ENCLAVE is an enclave's folder of a keystore. It does and prints what
// cyclone.c does. sample.idl's type is written to CDR by hand: Fast DDS's generator is in Java.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::rtps::InstanceHandle_t;
using eprosima::fastrtps::rtps::SerializedPayload_t;

namespace {

// Of a ping that was lost.
constexpr std::chrono::milliseconds kPatience{200};
constexpr uint32_t kMaxPayloadBytes = 8u << 20;

struct Sample {
  uint32_t number = 0;
  uint64_t sent_ns = 0;
  std::vector<uint8_t> payload;
};

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

class SampleType : public TopicDataType {
 public:
  SampleType() {
    setName("warifu::Sample");
    m_typeSize = kMaxPayloadBytes + 64;
    m_isGetKeyDefined = false;
  }

  bool serialize(void *data, SerializedPayload_t *payload) override {
    const auto *sample = static_cast<Sample *>(data);
    eprosima::fastcdr::FastBuffer buffer(reinterpret_cast<char *>(payload->data),
                                         payload->max_size);
    eprosima::fastcdr::Cdr cdr(buffer, eprosima::fastcdr::Cdr::DEFAULT_ENDIAN,
                               eprosima::fastcdr::Cdr::DDS_CDR);
    payload->encapsulation =
        cdr.endianness() == eprosima::fastcdr::Cdr::BIG_ENDIANNESS ? CDR_BE : CDR_LE;
    cdr.serialize_encapsulation();
    cdr << sample->number << sample->sent_ns << sample->payload;
    payload->length = static_cast<uint32_t>(cdr.getSerializedDataLength());
    return true;
  }

  bool deserialize(SerializedPayload_t *payload, void *data) override {
    auto *sample = static_cast<Sample *>(data);
    try {
      eprosima::fastcdr::FastBuffer buffer(reinterpret_cast<char *>(payload->data),
                                           payload->length);
      eprosima::fastcdr::Cdr cdr(buffer, eprosima::fastcdr::Cdr::DEFAULT_ENDIAN,
                                 eprosima::fastcdr::Cdr::DDS_CDR);
      cdr.read_encapsulation();
      cdr >> sample->number >> sample->sent_ns >> sample->payload;
    } catch (const eprosima::fastcdr::exception::Exception &error) {
      std::fprintf(stderr, "fastdds: a sample cannot be read: %s\n", error.what());
      return false;
    }
    return true;
  }

  std::function<uint32_t()> getSerializedSizeProvider(void *data) override {
    return [data] {
      // Encapsulation, number, padding, time, length.
      return static_cast<uint32_t>(static_cast<Sample *>(data)->payload.size()) + 32u;
    };
  }

  void *createData() override { return new Sample; }
  void deleteData(void *data) override { delete static_cast<Sample *>(data); }
  bool getKey(void *, InstanceHandle_t *, bool) override { return false; }
};

// The latest sample, given on to one who waits.
class Inbox : public DataReaderListener {
 public:
  void on_data_available(DataReader *reader) override {
    SampleInfo info;
    Sample sample;
    while (reader->take_next_sample(&sample, &info) == ReturnCode_t::RETCODE_OK) {
      if (info.valid_data) {
        const std::lock_guard<std::mutex> guard(lock_);
        latest_ = std::move(sample);
        is_new_ = true;
        arrived_.notify_one();
      }
    }
  }

  void on_subscription_matched(DataReader *, const SubscriptionMatchedStatus &status) override {
    matched = status.current_count;
  }

  bool take(Sample &sample, std::chrono::milliseconds patience) {
    std::unique_lock<std::mutex> guard(lock_);
    if (!arrived_.wait_for(guard, patience, [this] { return is_new_; })) {
      return false;
    }
    sample = std::move(latest_);
    is_new_ = false;
    return true;
  }

  std::atomic<int> matched{0};

 private:
  std::mutex lock_;
  std::condition_variable arrived_;
  Sample latest_;
  bool is_new_ = false;
};

void secure(DomainParticipantQos &qos, const std::string &enclave) {
  auto &properties = qos.properties().properties();
  const auto add = [&](const std::string &name, const std::string &value) {
    properties.emplace_back("dds.sec." + name, value);
  };
  const std::string file = "file://" + enclave + "/";
  add("auth.plugin", "builtin.PKI-DH");
  add("auth.builtin.PKI-DH.identity_ca", file + "identity_ca.cert.pem");
  add("auth.builtin.PKI-DH.identity_certificate", file + "cert.pem");
  add("auth.builtin.PKI-DH.private_key", file + "key.pem");
  add("access.plugin", "builtin.Access-Permissions");
  add("access.builtin.Access-Permissions.permissions_ca", file + "permissions_ca.cert.pem");
  add("access.builtin.Access-Permissions.governance", file + "governance.p7s");
  add("access.builtin.Access-Permissions.permissions", file + "permissions.p7s");
  add("crypto.plugin", "builtin.AES-GCM-GMAC");
}

int failed(const char *what) {
  std::fprintf(stderr, "fastdds: no %s\n", what);
  return 1;
}

}  // namespace

int main(int argc, char **argv) {
  const bool pings = argc >= 5 && std::strcmp(argv[1], "ping") == 0;
  const int named = pings ? 5 : 3;
  if ((!pings && (argc < 3 || std::strcmp(argv[1], "pong") != 0)) || argc > named + 1) {
    std::fprintf(stderr, "usage: fastdds ping SECONDS PAYLOAD_BYTES COUNT [ENCLAVE] | fastdds "
                         "pong SECONDS [ENCLAVE]\n");
    return 2;
  }
  const uint64_t end = now_ns() + static_cast<uint64_t>(std::stod(argv[2]) * 1e9);
  const uint32_t bytes = pings ? static_cast<uint32_t>(std::stoul(argv[3])) : 0;
  const uint32_t count = pings ? static_cast<uint32_t>(std::stoul(argv[4])) : 0;
  if (bytes > kMaxPayloadBytes) {
    std::fprintf(stderr, "fastdds: PAYLOAD_BYTES is %u: expected %u at most\n", bytes,
                 kMaxPayloadBytes);
    return 2;
  }

  DomainParticipantQos qos;
  // Without shared memory, in which nothing is encrypted or captured.
  qos.transport().use_builtin_transports = false;
  qos.transport().user_transports.push_back(
      std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>());
  if (argc > named) {
    secure(qos, argv[named]);
  }
  auto *factory = DomainParticipantFactory::get_instance();
  auto *participant = factory->create_participant(0, qos);
  if (participant == nullptr) {
    return failed("participant");
  }
  TypeSupport type(new SampleType);
  type.register_type(participant);
  const std::string name = type.get_type_name();
  auto *there = participant->create_topic("rt/warifu_ping", name, TOPIC_QOS_DEFAULT);
  auto *back = participant->create_topic("rt/warifu_pong", name, TOPIC_QOS_DEFAULT);
  auto *publisher = participant->create_publisher(PUBLISHER_QOS_DEFAULT);
  auto *subscriber = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
  if (there == nullptr || back == nullptr || publisher == nullptr || subscriber == nullptr) {
    return failed("topic");
  }
  DataWriterQos writes;
  writes.reliability().kind = RELIABLE_RELIABILITY_QOS;
  writes.history().kind = KEEP_LAST_HISTORY_QOS;
  writes.history().depth = 1;
  // A payload's memory is taken as it is needed.
  using eprosima::fastrtps::rtps::DYNAMIC_RESERVE_MEMORY_MODE;
  writes.endpoint().history_memory_policy = DYNAMIC_RESERVE_MEMORY_MODE;
  writes.publish_mode().kind =
      bytes > 60000 || !pings ? ASYNCHRONOUS_PUBLISH_MODE : SYNCHRONOUS_PUBLISH_MODE;
  DataReaderQos reads;
  reads.reliability().kind = RELIABLE_RELIABILITY_QOS;
  reads.history().kind = KEEP_LAST_HISTORY_QOS;
  reads.history().depth = 1;
  reads.endpoint().history_memory_policy = DYNAMIC_RESERVE_MEMORY_MODE;
  Inbox inbox;
  auto *writer = publisher->create_datawriter(pings ? there : back, writes);
  auto *reader = subscriber->create_datareader(pings ? back : there, reads, &inbox);
  if (writer == nullptr || reader == nullptr) {
    return failed("writer or reader");
  }

  uint32_t sent = 0;
  uint32_t received = 0;
  Sample sample;
  if (pings) {
    Sample out;
    out.payload.assign(bytes, 0xee);
    while (now_ns() < end && received < count) {
      PublicationMatchedStatus status;
      writer->get_publication_matched_status(status);
      if (status.current_count == 0 || inbox.matched == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        continue;
      }
      out.number = ++sent;
      const uint64_t begun = out.sent_ns = now_ns();
      writer->write(&out);
      while (inbox.take(sample, kPatience)) {
        const uint64_t arrived = now_ns();
        if (sample.number != sent) {
          continue;
        }
        received++;
        std::printf("{\"number\":%u,\"there_ns\":%llu,\"back_ns\":%llu}\n", sent,
                    static_cast<unsigned long long>(sample.sent_ns - begun),
                    static_cast<unsigned long long>(arrived - sample.sent_ns));
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } else {
    while (now_ns() < end) {
      if (inbox.take(sample, std::chrono::milliseconds(100))) {
        received++;
        sample.sent_ns = now_ns();
        writer->write(&sample);
        sent++;
      }
    }
  }
  std::printf("{\"sent\":%u,\"received\":%u}\n", sent, received);
  publisher->delete_datawriter(writer);
  subscriber->delete_datareader(reader);
  participant->delete_contained_entities();
  factory->delete_participant(participant);
  return received > 0 ? 0 : 1;
}
