// Surveying payloads and telling messages apart.
#include "messages.hpp"
#include "tfrio/survey.hpp"

namespace {

using tfrio::PayloadClass;
using tfrio::SchemaScanner;

TEST(survey_of_a_sequence) {
  SchemaScanner scanner(true, false);
  CHECK_EQUAL(scanner.feed(check::record(check::kSequence), 0, {.final = true}).records, 1);
  const auto& result = scanner.result();
  CHECK_EQUAL(result.size(), 3u);
  CHECK_EQUAL(result[1].name, "tok");
  CHECK(result[1].place == tfrio::Place::list);
  CHECK_EQUAL(result[1].empty, 1);
  CHECK_EQUAL(result[1].kinds[3], 1);
  CHECK_EQUAL(result[1].min_length, 0);
  CHECK_EQUAL(result[1].max_length, 3);
  CHECK_EQUAL(result[1].min_steps, 3);
  CHECK_EQUAL(result[0].min_steps, -1);
}

TEST(survey_counts_records) {
  SchemaScanner scanner(false, false);
  const auto data = check::framed({check::unhex(check::kKindless), check::unhex(check::kEmptyInt),
                                   check::unhex(""), check::unhex(check::kMixed)});
  CHECK_EQUAL(scanner.feed(data, 0, {}).records, 4);
  const auto& x = scanner.result()[0];
  CHECK_EQUAL(x.name, "x");
  CHECK_EQUAL(x.present, 3);
  CHECK_EQUAL(x.kindless, 1);
  CHECK_EQUAL(x.empty, 1);
  CHECK_EQUAL(x.kinds[3], 2);
  CHECK_EQUAL(x.first_record[3], 1);
  CHECK_EQUAL(x.max_length, 4);
  CHECK_EQUAL(scanner.result()[1].present, 2);
}

TEST(survey_looks_into_everything) {
  SchemaScanner scanner(false, false);
  const auto progress = scanner.feed(check::record("0a0c0a0a0a017812051a030a01ff"), 0, {});
  CHECK(progress.fault.code == tfrio::FaultCode::wire);
  CHECK_EQUAL(progress.fault.feature, "x");
  CHECK_EQUAL(scanner.result().size(), 0u);
}

PayloadClass class_of(const std::string& hex) {
  return tfrio::classify(check::unhex(hex));
}

TEST(classify_by_content) {
  for (const std::string& hex :
       {std::string(), std::string("0a00"), check::kNegative, check::kUnpacked, check::kKindless,
        check::kUnknownFields, check::kNameNotUtf8}) {
    CHECK(class_of(hex) == PayloadClass::example);
  }
  CHECK(class_of(check::kSequence) == PayloadClass::sequence);
  CHECK(class_of("1200") == PayloadClass::sequence);
  // Another message, a cut Example, text, text that reads as fields nobody knows.
  for (const char* hex :
       {"089601", "0a0c0a0a0a017812051a030a", "68656c6c6f", "0a03616263", "0a0468696869"}) {
    CHECK(class_of(hex) == PayloadClass::other);
  }
}

}  // namespace
