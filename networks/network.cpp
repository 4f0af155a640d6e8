#include "networks/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace networks {
namespace {

// Sizes that reduced() halves together, and the minimum for each.
struct Halved {
  std::vector<size_t> sizes;
  uint64_t least;
};

struct Row {
  Operation operation;
  const char* name;
  std::vector<const char*> sizes;
  std::vector<const char*> words;
  bool activations;
  std::vector<Halved> halved;  // each as far as possible before the next
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      {Operation::conv2d,
       "conv2d",
       {"C", "H", "W", "K", "R", "S", "stride", "padding"},
       {"groups", "bias", "residual"},
       true,
       {{{1, 2}, 16}, {{0, 3}, 32}}},
      {Operation::conv_transpose2d,
       "conv_transpose2d",
       {"C", "H", "W", "K", "R", "S", "stride", "padding"},
       {"bias"},
       true,
       {{{1, 2}, 8}, {{0, 3}, 32}}},
      {Operation::max_pool,
       "max_pool",
       {"C", "H", "W", "kernel", "stride", "padding"},
       {},
       false,
       {{{1, 2}, 16}, {{0}, 16}}},
      {Operation::avg_pool, "avg_pool", {"C", "H", "W", "kernel", "stride", "padding"}, {}, false, {{{0}, 16}}},
      {Operation::linear,
       "linear",
       {"rows", "outputs", "inputs"},
       {"bias", "residual"},
       true,
       {{{0}, 32}, {{1}, 256}, {{2}, 256}, {{0}, 1}}},
      {Operation::attention,
       "attention",
       {"heads", "kv_heads", "seq_q", "seq_kv", "head_dim"},
       {"causal"},
       false,
       {{{0, 1}, 2}, {{2, 3}, 32}, {{3}, 64}}},
      {Operation::layer_norm, "layer_norm", {"rows", "cols"}, {"residual"}, false, {{{0}, 4}, {{1}, 64}}},
      {Operation::rms_norm, "rms_norm", {"rows", "cols"}, {"residual"}, false, {{{0}, 4}, {{1}, 64}}},
      {Operation::softmax, "softmax", {"rows", "cols"}, {}, false, {{{0}, 4}, {{1}, 64}}},
      {Operation::embedding, "embedding", {"entries", "size", "count"}, {}, false, {{{0}, 64}, {{2}, 8}, {{1}, 64}}},
      {Operation::rope, "rope", {"heads", "seq", "head_dim"}, {}, false, {{{1}, 8}, {{0}, 2}}},
      {Operation::add, "add", {"count"}, {}, false, {{{0}, 64}}},
      {Operation::mul, "mul", {"count"}, {}, false, {{{0}, 64}}},
      {Operation::concat, "concat", {"C1", "C2", "H", "W"}, {}, false, {{{2, 3}, 8}, {{0, 1}, 4}}},
      {Operation::transpose, "transpose", {"rows", "cols"}, {}, false, {{{0}, 16}, {{1}, 16}}}};
  return table;
}

const Row& row_of(Operation operation) {
  return *std::find_if(rows().begin(), rows().end(), [&](const Row& row) { return row.operation == operation; });
}

constexpr std::pair<const char*, int32_t> kActivations[] = {{"relu", TUFF_ACTIVATION_RELU},
                                                            {"relu6", TUFF_ACTIVATION_RELU6},
                                                            {"gelu", TUFF_ACTIVATION_GELU},
                                                            {"gelu_tanh", TUFF_ACTIVATION_GELU_TANH},
                                                            {"silu", TUFF_ACTIVATION_SILU}};

// Parses a number from 0 to 2^32, the upper limit of any size in a layer.
bool read_number(std::string_view word, uint64_t& number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc{} && end == word.data() + word.size() && number <= uint64_t{1} << 32;
}

template <typename... Arguments>
void require(bool condition, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  if (!condition) throw std::runtime_error(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// Parses the words of a line, from the operation on. Throws a description of the error, without the file and line.
Layer parse_layer(const std::vector<std::string>& words) {
  const auto row = std::find_if(rows().begin(), rows().end(), [&](const Row& each) { return words[0] == each.name; });
  require(row != rows().end(), "\"{}\" is not an operation", words[0]);
  Layer layer;
  layer.operation = row->operation;
  size_t at = 1;
  uint64_t number = 0;
  for (; at < words.size() && read_number(words[at], number); ++at) layer.sizes.push_back(number);
  require(layer.sizes.size() == row->sizes.size(), "{} has {} sizes, needs {}: {}", row->name, layer.sizes.size(),
          row->sizes.size(), fmt::join(row->sizes, " "));
  for (size_t i = 0; i < layer.sizes.size(); ++i) {
    require(layer.sizes[i] > 0 || std::string_view(row->sizes[i]) == "padding", "{} is 0", row->sizes[i]);
  }
  const auto allowed = [&](const char* word) {
    return std::any_of(row->words.begin(), row->words.end(), [&](std::string_view each) { return each == word; });
  };
  bool counted = false;
  for (; at < words.size(); ++at) {
    const std::string& word = words[at];
    require(!counted, "\"{}\" stands behind the count", word);
    const auto activation = std::find_if(std::begin(kActivations), std::end(kActivations),
                                         [&](const auto& each) { return word == each.first; });
    if (word == "groups" && allowed("groups")) {
      require(at + 1 < words.size() && read_number(words[at + 1], layer.groups) && layer.groups > 0,
              "groups needs a number behind it");
      ++at;
    } else if (word == "bias" && allowed("bias")) {
      layer.bias = true;
    } else if (word == "residual" && allowed("residual")) {
      layer.residual = true;
    } else if (word == "causal" && allowed("causal")) {
      layer.causal = true;
    } else if (activation != std::end(kActivations) && row->activations) {
      require(layer.activation == TUFF_ACTIVATION_NONE, "\"{}\" is a second activation", word);
      layer.activation = activation->second;
    } else {
      counted = word.size() > 1 && word[0] == 'x' && read_number(std::string_view(word).substr(1), layer.count);
      require(counted && layer.count > 0, "\"{}\" is not a word of {}", word, row->name);
    }
  }
  require(counted, "there is no count, such as x1, at the end");
  return layer;
}

// Rejects what a call would reject.
void check_layer(const Layer& layer) {
  const std::vector<uint64_t>& s = layer.sizes;
  switch (layer.operation) {
    case Operation::conv2d:
      require(s[0] % layer.groups == 0 && s[3] % layer.groups == 0, "groups {} divides not both {} and {} channels",
              layer.groups, s[0], s[3]);
      require(s[1] + 2 * s[7] >= s[4] && s[2] + 2 * s[7] >= s[5], "a filter of {} x {} is larger than the padded image",
              s[4], s[5]);
      break;
    case Operation::conv_transpose2d:
      require(2 * s[7] < (s[1] - 1) * s[6] + s[4] && 2 * s[7] < (s[2] - 1) * s[6] + s[5],
              "padding {} removes more than the output has", s[7]);
      break;
    case Operation::max_pool:
    case Operation::avg_pool:
      require(2 * s[5] <= s[3] && s[1] + 2 * s[5] >= s[3] && s[2] + 2 * s[5] >= s[3],
              "a window of {} with padding {} does not fit", s[3], s[5]);
      break;
    case Operation::attention:
      require(s[0] % s[1] == 0, "{} heads are not a multiple of {}", s[0], s[1]);
      require(!layer.causal || s[2] <= s[3], "{} rows are more than {} keys", s[2], s[3]);
      break;
    case Operation::rope: require(s[2] % 2 == 0, "head_dim {} is odd", s[2]); break;
    default: break;
  }
}

double product(const std::vector<uint64_t>& sizes) {
  double result = 1;
  for (const uint64_t size : sizes) result *= static_cast<double>(size);
  return result;
}

}  // namespace

std::string Layer::title() const {
  const Row& row = row_of(operation);
  std::string text = fmt::format("{} {}", row.name, fmt::join(sizes, " "));
  if (groups != 1) text += fmt::format(" groups {}", groups);
  if (bias) text += " bias";
  if (residual) text += " residual";
  if (causal) text += " causal";
  for (const auto& [name, value] : kActivations) {
    if (value == activation) text += fmt::format(" {}", name);
  }
  return text;
}

double Layer::work() const {
  const std::vector<uint64_t>& s = sizes;
  switch (operation) {
    case Operation::conv2d: {
      const uint64_t p = (s[1] + 2 * s[7] - s[4]) / s[6] + 1, q = (s[2] + 2 * s[7] - s[5]) / s[6] + 1;
      return static_cast<double>(p * q) * static_cast<double>(weights());
    }
    case Operation::conv_transpose2d: return static_cast<double>(s[1] * s[2]) * static_cast<double>(weights());
    case Operation::attention: return 2 * product({s[0], s[2], s[3], s[4]});
    case Operation::embedding: return product({s[0] + s[2], s[1]});
    case Operation::concat: return product({s[0] + s[1], s[2], s[3]});
    case Operation::max_pool:
    case Operation::avg_pool: return product({s[0], s[1], s[2]});
    default: return product(s);
  }
}

uint64_t Layer::weights() const {
  switch (operation) {
    case Operation::conv2d:
    case Operation::conv_transpose2d: return sizes[0] / groups * sizes[3] * sizes[4] * sizes[5];
    case Operation::linear: return sizes[1] * sizes[2];
    default: return 0;
  }
}

Network parse_network(const std::string& name, std::istream& text) {
  Network network{name, {}};
  int line_number = 0;
  for (std::string line; std::getline(text, line);) {
    ++line_number;
    std::istringstream stream(line.substr(0, line.find('#')));
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.empty()) continue;
    try {
      Layer layer = parse_layer(words);
      check_layer(layer);
      layer.line = line_number;
      for (const Layer& other : network.layers) {
        require(other.title() != layer.title(), "the same layer is on line {}", other.line);
      }
      network.layers.push_back(std::move(layer));
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(fmt::format("{}.txt:{}: {}", name, line_number, error.what()));
    }
  }
  require(!network.layers.empty(), "{}.txt: there are no layers", name);
  return network;
}

Network read_network(const std::string& name) {
  const std::string path = fmt::format("{}/{}.txt", TUFF_NETWORKS, name);
  std::ifstream file(path);
  require(file.is_open(), "cannot read {}", path);
  return parse_network(name, file);
}

std::vector<std::string> network_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(TUFF_NETWORKS)) {
    if (entry.path().extension() == ".txt" && entry.path().stem() != "CMakeLists") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Layer reduced(Layer layer, double work) {
  for (const Halved& step : row_of(layer.operation).halved) {
    const std::vector<size_t>& sizes = step.sizes;
    const auto halve = [&] {
      Layer half = layer;
      for (const size_t i : sizes) half.sizes[i] = (half.sizes[i] + 1) / 2;
      // Halving the channels also halves the groups: depthwise stays depthwise, otherwise groups keep their size.
      if (layer.operation == Operation::conv2d && sizes.front() == 0) half.groups = (half.groups + 1) / 2;
      return half;
    };
    const auto may = [&] {
      return layer.work() > work && std::all_of(sizes.begin(), sizes.end(), [&](size_t i) {
               // Sizes that are halved together must be even, so that they stay in proportion.
               return layer.sizes[i] / 2 >= step.least && (sizes.size() == 1 || layer.sizes[i] % 2 == 0);
             });
    };
    while (may()) layer = halve();
  }
  return layer;
}

}  // namespace networks
