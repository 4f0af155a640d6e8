// Normalisations.
#include <fmt/format.h>

#include <memory>

#include "bench/harness.hpp"

namespace bench {
namespace {

// A table row: the operation's name, its sizes, then its options.
struct Row {
  std::string name;
  std::vector<uint64_t> sizes;
  DType dtype = DType::f32;
  bool residual = false;

  explicit Row(const std::vector<std::string>& words) : name(words.at(0)) {
    for (size_t i = 1; i < words.size(); ++i) {
      if (is_dtype(words[i])) {
        dtype = to_dtype(words, i);
      } else if (words[i] == "residual") {
        residual = true;
      } else {
        sizes.push_back(to_number(words[i]));
      }
    }
  }
  bool of_rows() const { return name == "layer_norm" || name == "rms_norm"; }
  uint64_t count() const { return sizes.at(0) * sizes.at(1) * (of_rows() ? 1 : sizes.at(2)); }
  uint64_t channels() const { return sizes.at(1); }
  std::string title() const {
    return fmt::format("tuff/{}/{}{}{}", name, fmt::join(sizes, "x"), dtype_suffix(dtype), residual ? "/residual" : "");
  }
};

struct Tensors {
  std::shared_ptr<tuff::Buffer> x, y, weight, bias, residual, sum;
};

void call(const tuff::Context& context, const Row& row, const Tensors& t) {
  const auto common = [&](auto desc) {
    desc.dtype = static_cast<int32_t>(row.dtype);
    desc.input = t.x->handle();
    desc.output = t.y->handle();
    desc.weight = t.weight->handle();
    desc.epsilon = 1e-5;
    return desc;
  };
  const auto rows = [&](auto desc) {
    desc.rows = row.sizes.at(0);
    desc.cols = row.sizes.at(1);
    if (row.residual) {
      desc.residual = t.residual->handle();
      desc.sum = t.sum->handle();
    }
    return desc;
  };
  const auto images = [&](auto desc) {
    desc.batch = row.sizes.at(0);
    desc.channels = row.sizes.at(1);
    desc.inner = row.sizes.at(2);
    desc.bias = t.bias->handle();
    return desc;
  };
  if (row.name == "layer_norm") {
    auto desc = rows(common(tuff_layer_norm_desc{}));
    desc.bias = t.bias->handle();
    context.layer_norm(desc);
  } else if (row.name == "rms_norm") {
    context.rms_norm(rows(common(tuff_rms_norm_desc{})));
  } else if (row.name == "group_norm") {
    auto desc = images(common(tuff_group_norm_desc{}));
    desc.groups = row.sizes.at(3);
    context.group_norm(desc);
  } else {
    auto desc = images(common(tuff_batch_norm_desc{}));
    desc.mean = t.bias->handle();
    desc.variance = t.weight->handle();
    context.batch_norm(desc);
  }
}

}  // namespace

void add_norm() {
  for (const auto& words : read_table("norm")) {
    const Row row(words);
    const uint64_t count = row.count(), bytes = (row.residual ? 4 : 2) * element_bytes(row.dtype) * count;
    add(row.title(), {0, static_cast<double>(bytes)}, bytes, [=](const tuff::Context& context) {
      const auto parameters = [&] { return random_buffer(context, row.channels(), row.dtype); };
      Tensors tensors{random_buffer(context, count, row.dtype),
                      empty_buffer(context, count),
                      parameters(),
                      parameters(),
                      nullptr,
                      nullptr};
      if (row.residual) {
        tensors.residual = random_buffer(context, count, row.dtype);
        tensors.sum = empty_buffer(context, count);
      }
      return [=, &context] { call(context, row, tensors); };
    });
  }
}

}  // namespace bench
