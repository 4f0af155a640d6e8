// The layers of networks/, each on every backend with sizes reduced to kWork, and the reader of the files.
#include <cfloat>
#include <cmath>
#include <functional>
#include <map>
#include <sstream>

#include "networks/layer_call.hpp"
#include "support/activation.hpp"
#include "support/attention_problem.hpp"
#include "support/bounds.hpp"
#include "support/norm_problem.hpp"
#include "support/stored.hpp"

namespace tuff_test::networks_test {
namespace {

using networks::Layer;
using networks::LayerCall;
using networks::Operation;
using Values = std::vector<std::vector<float>>;  // one vector per input

// The multiplications per sample that a layer is reduced to, extents first, then channels. The whole reference
// computation may take only seconds.
constexpr double kWork = 1e6;
constexpr uint64_t kBatch = 2;

struct NetworkCase {
  std::string network;
  Layer layer;
  int32_t dtype = TUFF_F32;

  std::string name() const { return network + "_line" + std::to_string(layer.line) + "_" + name_of(dtype); }
  double work() const { return layer.work() * kBatch; }
};

std::vector<NetworkCase> cases() {
  std::vector<NetworkCase> all;
  for (const std::string& name : networks::network_names()) {
    try {
      for (const Layer& layer : networks::read_network(name).layers) {
        all.push_back({name, reduced(layer, kWork)});
        // Most 16-bit cases are covered by separate tables.
        if (all.size() % 8 == 0) all.push_back({name, reduced(layer, kWork), TUFF_F16});
      }
    } catch (const std::runtime_error&) {
      // NetworksFiles.AreWhatTheyName reports it.
    }
  }
  return all;
}

// Integers, and fractions of them that keep results moderate, so that sums of products are exact. Operations that are
// judged by a bound get arbitrary numbers.
Values values_of(const NetworkCase& s, const LayerCall& call) {
  Values values;
  for (const networks::Operand& input : call.inputs) {
    const uint64_t seed = values.size() + 1;
    std::vector<float> drawn(input.count);
    switch (s.layer.operation) {
      case Operation::attention: drawn = uniforms(input.count, -1, 1, seed); break;
      case Operation::layer_norm:
      case Operation::rms_norm:
      case Operation::rope: drawn = spreads(input.count, seed); break;
      case Operation::softmax: drawn = uniforms(input.count, -8, 8, seed); break;
      default:
        drawn = integers(input.count, 8, seed);
        if (input.name == "filter" || input.name == "b") {
          for (float& value : drawn) value *= 0x1p-8f;
        }
    }
    drawn = rounded(s.dtype, drawn);
    if (input.entries != 0) {
      Random random(seed);
      for (float& value : drawn) value = from_bits(static_cast<uint32_t>(random.next() % input.entries));
    }
    values.push_back(std::move(drawn));
  }
  return values;
}

// Runs the layer and checks that its inputs are unchanged.
std::vector<float> run(tuff_context context, const NetworkCase& s, const LayerCall& call, const Values& values) {
  std::vector<StoredTensor> tensors;
  std::vector<tuff_buffer> inputs;
  for (size_t i = 0; i < values.size(); ++i) {
    tensors.emplace_back(context, call.inputs[i].entries != 0 ? TUFF_F32 : s.dtype, values[i]);
  }
  for (const StoredTensor& tensor : tensors) inputs.push_back(tensor);
  const StoredTensor output(context, s.dtype, call.outputs);
  EXPECT_OK(call.run(context, inputs, output));
  for (size_t i = 0; i < values.size(); ++i) tensors[i].expect_unchanged(values[i]);
  return output.read();
}

// The same layer in f32 on the host backend without its activation: exact if all sums are, otherwise rounded once.
std::vector<double> on_host(const NetworkCase& s, const Values& values) {
  NetworkCase plain = s;
  plain.dtype = TUFF_F32;
  plain.layer.activation = TUFF_ACTIVATION_NONE;
  const LayerCall call = make_call(plain.layer, kBatch, TUFF_F32);
  const std::vector<float> result = run(shared_context("host"), plain, call, values);
  return {result.begin(), result.end()};
}

// Converts [batch][seq][heads][dim] to [batch][heads][seq][dim], or back with the two sizes swapped.
template <typename T>
std::vector<T> exchanged(const std::vector<T>& x, uint64_t seq, uint64_t heads, uint64_t dim) {
  std::vector<T> result(x.size());
  for (uint64_t i = 0; i < x.size(); ++i) {
    const uint64_t d = i % dim, h = i / dim % heads, row = i / dim / heads % seq, b = i / dim / heads / seq;
    result[((b * heads + h) * seq + row) * dim + d] = x[i];
  }
  return result;
}

Expected attention_expected(const NetworkCase& s, const Values& values) {
  const std::vector<uint64_t>& size = s.layer.sizes;
  AttentionShape shape{.batch = kBatch,
                       .heads = size[0],
                       .seq_q = size[2],
                       .seq_kv = size[3],
                       .head_dim = size[4],
                       .causal = s.layer.causal ? TUFF_CAUSAL_BOTTOM_RIGHT : TUFF_CAUSAL_NONE,
                       .dtype = s.dtype,
                       .kv_heads = size[1]};
  Expected expected =
      solve_attention(shape, exchanged(values[0], size[2], size[0], size[4]),
                      exchanged(values[1], size[3], size[1], size[4]), exchanged(values[2], size[3], size[1], size[4]));
  expected.value = exchanged(expected.value, size[0], size[2], size[4]);
  expected.bound = exchanged(expected.bound, size[0], size[2], size[4]);
  return expected;
}

Expected norm_expected(const NetworkCase& s, const Values& values) {
  const bool centred = s.layer.operation == Operation::layer_norm;
  const std::vector<float> none;
  std::vector<float> x = values[0];
  if (s.layer.residual) {
    const std::vector<float>& residual = values.back();
    for (size_t i = 0; i < x.size(); ++i) x[i] = rounded(s.dtype, static_cast<double>(x[i]) + residual[i]);
  }
  Expected expected{std::vector<double>(x.size()), std::vector<double>(x.size())};
  const uint64_t cols = s.layer.sizes[1];
  for (uint64_t first = 0; first < x.size(); first += cols) {
    solve_norm({.centred = centred, .epsilon = 1e-5, .first = first, .n = cols}, x, values[1],
               centred ? values[2] : none, expected);
  }
  return expected;
}

// The host's result, and the bound on the error of one in f32.
Expected expected_of(const NetworkCase& s, const Values& values) {
  if (s.layer.operation == Operation::attention) return attention_expected(s, values);
  if (s.layer.operation == Operation::layer_norm || s.layer.operation == Operation::rms_norm) {
    return norm_expected(s, values);
  }
  Expected expected{on_host(s, values), {}};
  expected.bound.resize(expected.value.size());
  for (size_t i = 0; i < expected.value.size(); ++i) {
    double &value = expected.value[i], &bound = expected.bound[i];
    switch (s.layer.operation) {
      case Operation::conv2d:
      case Operation::conv_transpose2d:
      case Operation::linear:
        if (s.layer.activation > TUFF_ACTIVATION_RELU && s.layer.activation != TUFF_ACTIVATION_RELU6) {
          // The host's rounding, and a factor of the sum that is denormal and flushed.
          bound = activation_error(s.layer.activation, value, kU) + (1 + std::fabs(value)) * FLT_MIN;
        }
        value = static_cast<double>(activated(s.layer.activation, value));
        break;
      // An integer divided by the window's size, or multiplied by its inverse.
      case Operation::avg_pool: bound = 4 * kU * std::fabs(value); break;
      // Each rotation has two products of at most the largest input (tests/rope_test.cpp), plus the host's rounding.
      case Operation::rope: bound = 2 * 4.0 * (4 * 2 * kU + 0x1p-29 + 4 * kU); break;
      // Scores are within 16 of the largest: exp of both sums' terms, the sum, the quotient, and the host's rounding.
      case Operation::softmax:
        bound = value * (2 * exp_error(16) + gamma(sum_depth(s.layer.sizes[1]) + 8)) + FLT_MIN;
        break;
      default: break;
    }
  }
  return expected;
}

using Networks = Table<NetworkCase>;

TEST_P(Networks, LayerHolds) {
  const NetworkCase& s = row();
  const LayerCall call = make_call(s.layer, kBatch, s.dtype);
  const Values values = values_of(s, call);
  Expected expected = expected_of(s, values);
  add_storage(expected, s.dtype);
  expect_matches(run(context(), s, call, values), expected);
  if (HasFailure()) ADD_FAILURE() << s.network << ".txt:" << s.layer.line << ", as: " << s.layer.title();
}
TUFF_TABLE(Networks, NetworkCase, cases());

// The numbers from the architectures' papers and their usual implementations. For the U-Net's transposed convolutions,
// each input's taps are counted; some count them for each output.
TEST(NetworksFiles, AreWhatTheyName) {
  struct Known {
    double weights, work;  // in millions, and in 10^9 multiplications of one sample; 0: not checked
  };
  const std::map<std::string, Known> known = {
      {"resnet50", {25.503, 4.089}}, {"mobilenet_v2", {3.470, 0.3008}}, {"unet", {31.03, 48.17}},
      {"vit_b16", {86.3, 17.56}},    {"gpt2_prompt", {123.5, 0}},       {"gpt2_token", {123.5, 0}},
      {"llama_prompt", {7505, 0}},   {"llama_token", {7505, 0}},        {"minilm", {10.62, 0}}};
  const std::vector<std::string> names = networks::network_names();
  EXPECT_EQ(names.size(), known.size());
  for (const std::string& name : names) {
    ASSERT_EQ(known.count(name), 1u) << name;
    double weights = 0, work = 0;
    for (const Layer& layer : networks::read_network(name).layers) {
      weights += static_cast<double>(layer.count * layer.weights()) / 1e6;
      const bool product = layer.weights() != 0 || layer.operation == Operation::attention;
      if (product) work += static_cast<double>(layer.count) * layer.work() / 1e9;
    }
    EXPECT_NEAR(weights / known.at(name).weights, 1, 0.001) << name << ": " << weights;
    if (known.at(name).work != 0) {
      EXPECT_NEAR(work / known.at(name).work, 1, 0.001) << name << ": " << work;
    }
  }
}

// The message with which a text is refused.
std::string refusal(const std::string& text) {
  std::istringstream stream(text);
  try {
    networks::parse_network("net", stream);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(NetworksFiles, ALineIsReadWhole) {
  std::istringstream text("# a comment\n\nconv2d 8 10 12  16 3 5  2 1 groups 4 bias residual relu6 x7 # behind it\n");
  const networks::Network network = networks::parse_network("net", text);
  ASSERT_EQ(network.layers.size(), 1u);
  const Layer& layer = network.layers[0];
  EXPECT_EQ(layer.operation, Operation::conv2d);
  EXPECT_EQ(layer.sizes, (std::vector<uint64_t>{8, 10, 12, 16, 3, 5, 2, 1}));
  EXPECT_EQ(layer.groups, 4u);
  EXPECT_TRUE(layer.bias && layer.residual && !layer.causal);
  EXPECT_EQ(layer.activation, TUFF_ACTIVATION_RELU6);
  EXPECT_EQ(layer.count, 7u);
  EXPECT_EQ(layer.line, 3);
  EXPECT_EQ(layer.title(), "conv2d 8 10 12 16 3 5 2 1 groups 4 bias residual relu6");
  EXPECT_EQ(layer.weights(), 2u * 16 * 3 * 5);
  EXPECT_EQ(layer.work(), 5.0 * 5 * 480);
}

TEST(NetworksFiles, AMalformedLineIsNamed) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "net.txt: there are no layers"},
      {"# nothing\n", "net.txt: there are no layers"},
      {"add 4 x1\nfold 4 x1\n", "net.txt:2: \"fold\" is not an operation"},
      {"linear 1 2 bias x1\n", "net.txt:1: linear has 2 sizes, needs 3: rows outputs inputs"},
      {"linear 1 2 3 4 x1\n", "net.txt:1: linear has 4 sizes, needs 3: rows outputs inputs"},
      {"linear 1 -2 3 x1\n", "net.txt:1: linear has 1 sizes, needs 3: rows outputs inputs"},
      {"linear 1 0 3 x1\n", "net.txt:1: outputs is 0"},
      {"linear 1 99999999999 3 x1\n", "net.txt:1: linear has 1 sizes, needs 3: rows outputs inputs"},
      {"linear 1 2 3\n", "net.txt:1: there is no count, such as x1, at the end"},
      {"linear 1 2 3 x0\n", "net.txt:1: \"x0\" is not a word of linear"},
      {"linear 1 2 3 x\n", "net.txt:1: \"x\" is not a word of linear"},
      {"linear 1 2 3 x2 bias\n", "net.txt:1: \"bias\" stands behind the count"},
      {"linear 1 2 3 causal x1\n", "net.txt:1: \"causal\" is not a word of linear"},
      {"linear 1 2 3 relu silu x1\n", "net.txt:1: \"silu\" is a second activation"},
      {"softmax 1 2 relu x1\n", "net.txt:1: \"relu\" is not a word of softmax"},
      {"conv2d 8 9 9 8 3 3 1 1 groups x1\n", "net.txt:1: groups needs a number behind it"},
      {"conv2d 8 9 9 8 3 3 1 1 groups 3 x1\n", "net.txt:1: groups 3 divides not both 8 and 8 channels"},
      {"conv2d 8 2 2 8 5 5 1 1 x1\n", "net.txt:1: a filter of 5 x 5 is larger than the padded image"},
      {"conv_transpose2d 8 1 1 8 2 2 2 1 x1\n", "net.txt:1: padding 1 removes more than the output has"},
      {"max_pool 8 9 9 2 2 2 x1\n", "net.txt:1: a window of 2 with padding 2 does not fit"},
      {"attention 6 4 9 9 8 x1\n", "net.txt:1: 6 heads are not a multiple of 4"},
      {"attention 6 2 9 8 8 causal x1\n", "net.txt:1: 9 rows are more than 8 keys"},
      {"rope 2 3 5 x1\n", "net.txt:1: head_dim 5 is odd"},
      {"add 4 x1\n\nadd 4 x2\n", "net.txt:3: the same layer is on line 1"},
  };
  for (const auto& [text, message] : rows) EXPECT_EQ(refusal(text), message) << text;
  EXPECT_THROW(networks::read_network("no such network"), std::runtime_error);
}

// Reduced layers are still valid: the table above would detect calls that are refused. This checks that little is left
// of the large ones.
TEST(NetworksFiles, ReducedLayersAreSmall) {
  for (const std::string& name : networks::network_names()) {
    for (const Layer& layer : networks::read_network(name).layers) {
      const Layer small = reduced(layer, kWork);
      EXPECT_LE(small.work(), 8 * kWork) << name << ": " << small.title();
      EXPECT_EQ(reduced(layer, 1e30).title(), layer.title());
    }
  }
}

}  // namespace
}  // namespace tuff_test::networks_test
