#include "tests/conformance/answers.h"

#include <cstring>

#include "runtime/base/strings.h"

namespace solstice::conformance {
namespace {

constexpr char kMagic[] = "SOLCONF1";

template <typename T>
void Put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void PutText(std::string& out, const std::string& text) {
  Put(out, static_cast<uint16_t>(text.size()));
  out += text.substr(0, 0xffff);
}

// Takes from the front of a text; false for good once it has not enough.
class Reader {
 public:
  explicit Reader(const std::string& content) : content_(content) {}
  bool Take(size_t bytes, void* to) {
    ok_ = ok_ && bytes <= content_.size() - at_;
    if (!ok_) return false;
    if (bytes > 0) std::memcpy(to, content_.data() + at_, bytes);
    at_ += bytes;
    return true;
  }
  template <typename T>
  T Number() {
    T value{};
    Take(sizeof value, &value);
    return value;
  }
  std::string Text() {
    const size_t bytes = Number<uint16_t>();
    if (bytes > content_.size() - at_) ok_ = false;
    std::string text(ok_ ? bytes : 0, '\0');
    Take(text.size(), text.data());
    return text;
  }
  size_t left() const { return content_.size() - at_; }
  bool ok() const { return ok_; }

 private:
  const std::string& content_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace

std::string Serialise(const std::vector<Case>& cases, const std::vector<Answer>& answers, const std::string& device) {
  std::string out(kMagic, 8);
  PutText(out, device);
  Put(out, static_cast<uint32_t>(cases.size()));
  for (size_t i = 0; i < cases.size(); ++i) {
    PutText(out, cases[i].name);
    Put(out, cases[i].Fingerprint());
    Put(out, static_cast<uint32_t>(answers[i].bytes.size()));
  }
  for (const Answer& answer : answers) {
    out.append(reinterpret_cast<const char*>(answer.bytes.data()), answer.bytes.size());
  }
  return out;
}

StatusOr<Answers> Parse(const std::string& content) {
  Reader reader(content);
  char magic[8] = {};
  if (!reader.Take(8, magic) || std::memcmp(magic, kMagic, 8) != 0) {
    return base::DataLoss("this is no file of answers", "make it with --record");
  }
  Answers answers;
  answers.device = reader.Text();
  const uint32_t count = reader.Number<uint32_t>();
  std::vector<std::pair<std::string, uint32_t>> sizes;
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    const std::string name = reader.Text();
    answers.fingerprints[name] = reader.Number<uint64_t>();
    sizes.emplace_back(name, reader.Number<uint32_t>());
  }
  for (const auto& [name, bytes] : sizes) {
    if (!reader.ok() || bytes > reader.left()) return base::DataLoss("the file of answers ends early");
    Answer& answer = answers.by_name[name];
    answer.bytes.resize(bytes);
    reader.Take(bytes, answer.bytes.data());
    if (bytes == 0) answer.why_not = "it was not executed when the answers were recorded";
  }
  if (!reader.ok() || reader.left() != 0) return base::DataLoss("the file of answers is damaged");
  return answers;
}

}  // namespace solstice::conformance
