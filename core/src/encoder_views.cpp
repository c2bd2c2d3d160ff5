// Checking columns before anything is written from them.
#include "encoder_views.hpp"

#include <stdexcept>

namespace tfrio {
namespace {

/// Check that `offsets` has `n` + 1 entries that rise from 0 or more to at most `limit`; return
/// the last.
std::size_t check_offsets(const FeatureSpec& spec, std::span<const std::int64_t> offsets,
                          std::size_t n, const char* what) {
  if (offsets.size() != n + 1) misfit(spec, what);
  bool rising = offsets[0] >= 0;
  for (std::size_t i = 0; i < n; ++i) rising &= offsets[i] <= offsets[i + 1];
  if (!rising) misfit(spec, "offsets must not be negative, nor fall");
  return static_cast<std::size_t>(offsets[n]);
}

/// Check that steps said to carry no kind hold no values.
void check_kindless(const FeatureSpec& spec, const ColumnView& view, std::size_t steps) {
  const Bytes with_kind = view.step_present;
  if (with_kind.empty()) return;
  if (spec.place != Place::list || with_kind.size() != steps) {
    misfit(spec, "`step_present` must have one entry a step");
  }
  for (std::size_t i = 0; i < steps; ++i) {
    if (with_kind[i] != 0) continue;
    const bool none =
        view.count < 0 ? view.value_offsets[i] == view.value_offsets[i + 1] : view.count == 0;
    if (!none) misfit(spec, "a step without a kind holds values");
  }
}

}  // namespace

void misfit(const FeatureSpec& spec, const char* what) {
  throw std::invalid_argument("feature '" + spec.name + "': " + what);
}

void check_view(const FeatureSpec& spec, const ColumnView& view, std::size_t rows) {
  if (!view.present.empty() && view.present.size() != rows) {
    misfit(spec, "`present` must have one entry a row");
  }
  std::size_t items = rows;
  if (spec.place == Place::list) {
    items = check_offsets(spec, view.step_offsets, rows, "step offsets must be one more than rows");
  }
  std::size_t values = 0;
  if (view.count < 0) {
    values = check_offsets(spec, view.value_offsets, items,
                           "value offsets must be one more than rows or steps");
  } else if (items > 0 && static_cast<std::size_t>(view.count) > SIZE_MAX / 16 / items) {
    misfit(spec, "more values than memory can hold");
  } else {
    values = items * static_cast<std::size_t>(view.count);
  }
  check_kindless(spec, view, items);
  if (spec.kind == Kind::none && values > 0) misfit(spec, "values without a kind");
  std::size_t bytes = values * value_size(spec.kind);
  if (spec.kind == Kind::bytes) {
    if (view.byte_offsets.size() <= values) misfit(spec, "too few byte offsets for the values");
    bytes = check_offsets(spec, view.byte_offsets.first(values + 1), values, "byte offsets");
  }
  if (bytes > view.values.size()) misfit(spec, "fewer values than the rows need");
}

std::size_t used_bytes(const FeatureSpec& spec, const ColumnView& view, std::size_t rows) {
  std::size_t first = 0, last = rows;
  const auto through = [&](std::span<const std::int64_t> offsets) {
    first = static_cast<std::size_t>(offsets[first]);
    last = static_cast<std::size_t>(offsets[last]);
  };
  if (spec.place == Place::list) through(view.step_offsets);
  if (view.count < 0) {
    through(view.value_offsets);
  } else {
    first *= static_cast<std::size_t>(view.count);
    last *= static_cast<std::size_t>(view.count);
  }
  if (spec.kind == Kind::bytes) through(view.byte_offsets);
  return (last - first) * value_size(spec.kind);
}

}  // namespace tfrio
