// What the encoder asks of columns before it writes from them. Internal to the core.
#pragma once

#include "tfrio/encoder.hpp"

namespace tfrio {

/// Throw std::invalid_argument: `what` is wrong with a feature.
[[noreturn]] void misfit(const FeatureSpec& spec, const char* what);

/// Throw std::invalid_argument where a column does not hold `rows` rows of what `spec` says:
/// counts, offsets and values must fit one another.
void check_view(const FeatureSpec& spec, const ColumnView& view, std::size_t rows);

/// Return how many bytes of its values `rows` rows of a column use; the view has been checked.
std::size_t used_bytes(const FeatureSpec& spec, const ColumnView& view, std::size_t rows);

}  // namespace tfrio
