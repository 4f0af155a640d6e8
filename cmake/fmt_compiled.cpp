// The non-template part of {fmt}, compiled once for the whole build. Debian has fmt as a shared library, which
// libtuff.so should not depend on, and as headers, with which every file that formats anything takes three times as
// long to compile. The instantiations are those that fmt's headers declare extern.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template FMT_API auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;
template FMT_API locale_ref::locale_ref(const std::locale& locale);
template FMT_API auto locale_ref::get<std::locale>() const -> std::locale;
template FMT_API auto thousands_sep_impl(locale_ref locale) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref locale) -> char;
template FMT_API void buffer<char>::append(const char* begin, const char* end);
template FMT_API void vformat_to(buffer<char>& out, string_view text, basic_format_args<buffer_context<char>> arguments,
                                 locale_ref locale);

}  // namespace detail
FMT_END_NAMESPACE

#ifdef TUFF_TRY_FMT  // CMake's check that these pieces suffice for the installed fmt
#include <string>
#include <vector>

#include <fmt/ranges.h>

int main(int count, char** words) {
  const std::vector<std::string> all(words, words + count);
  std::string text = fmt::format("{} {:.3f} {:>8} {:#x} {} {:g}", count, 0.5 * count, all[0], count,
                                 fmt::join(all, " "), 1.0f * static_cast<float>(count));
  fmt::print("{}\n", text);
  return fmt::vformat("{:L}", fmt::make_format_args(count)).empty() ? 1 : 0;
}
#endif
