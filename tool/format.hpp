// Numbers formatted for people.
#pragma once

#include <cstdint>
#include <string>

namespace tool {

std::string format_bytes(uint64_t bytes);               // "1.94 GiB"; "512 B"
std::string format_count(uint64_t count);               // "1,048,576"
std::string format_seconds(double seconds);             // "12.3 us", "4.56 ms", "7.89 s"
std::string format_flops(double per_second);            // "48.7 TFLOP/s"
std::string format_bandwidth(double bytes_per_second);  // "4.28 TB/s"
std::string format_share(double share);                 // "85 %"
std::string format_error(double error);                 // "0", "3.1e-07"
std::string format_uuid(const uint8_t uuid[16]);
std::string format_vulkan_version(uint32_t version);  // "1.3.230"

// The first line, or the whole text, cut to `width` characters; cut text ends in "...".
std::string shorten(const std::string& text, size_t width);

}  // namespace tool
