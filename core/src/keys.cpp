// Feature names to numbers.
#include "tfrio/keys.hpp"

namespace tfrio {

KeyTable::KeyTable() {
  resize(16);
}

void KeyTable::add(std::string_view name, int number) {
  names_.emplace_back(name);
  numbers_.push_back(number);
  if (names_.size() * 4 > entries_.size()) {
    resize(entries_.size() * 2);
  } else {
    insert(static_cast<int>(names_.size()) - 1);
  }
}

bool KeyTable::same_text(int place, Bytes name) const {
  const std::string& text = names_[static_cast<std::size_t>(place)];
  return std::memcmp(text.data(), name.data(), name.size()) == 0;
}

void KeyTable::insert(int place) {
  const std::string& text = names_[static_cast<std::size_t>(place)];
  const Words words = words_of({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  std::size_t i = this->place(words);
  while (entries_[i].name >= 0) i = (i + 1) & mask_;
  entries_[i] = {words, place, numbers_[static_cast<std::size_t>(place)]};
}

void KeyTable::resize(std::size_t entries) {
  entries_.assign(entries, Entry{{0, 0, 0}, -1, -1});
  mask_ = entries - 1;
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(entries));
  for (std::size_t i = 0; i < names_.size(); ++i) insert(static_cast<int>(i));
}

}  // namespace tfrio
