// Names of faults.
#include "tfrio/fault.hpp"

namespace tfrio {

std::string_view code_name(FaultCode code) {
  switch (code) {
    case FaultCode::none:
      return "";
    case FaultCode::length_crc:
      return "length-crc";
    case FaultCode::payload_crc:
      return "payload-crc";
    case FaultCode::header_cut:
      return "header-cut";
    case FaultCode::payload_cut:
      return "payload-cut";
    case FaultCode::footer_cut:
      return "footer-cut";
    case FaultCode::too_long:
      return "too-long";
    case FaultCode::wire:
      return "wire";
    case FaultCode::utf8:
      return "utf8";
    case FaultCode::kind:
      return "kind";
    case FaultCode::count:
      return "count";
    case FaultCode::unknown:
      return "unknown";
  }
  return "";
}

std::string_view code_field(FaultCode code) {
  switch (code) {
    case FaultCode::length_crc:
    case FaultCode::header_cut:
    case FaultCode::too_long:
      return "header";
    case FaultCode::payload_crc:
    case FaultCode::payload_cut:
      return "payload";
    case FaultCode::footer_cut:
      return "footer";
    default:
      return "";
  }
}

}  // namespace tfrio
