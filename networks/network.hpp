// Networks as lists of layers, read from the text files in this folder. Tests and benchmarks run the same networks.
//
// A line has an operation, its sizes for one sample of a batch, options, and how often the layer occurs in the
// network. '#' begins a comment:
//
//   conv2d 64 56 56  64 3 3  1 1  bias relu  x3
//
//   operation         sizes                                options
//   conv2d            C H W  K R S  stride padding         groups G, bias, residual, an activation
//   conv_transpose2d  C H W  K R S  stride padding         bias, an activation
//   max_pool          C H W  kernel stride padding
//   avg_pool          C H W  kernel stride padding
//   linear            rows outputs inputs                  bias, residual, an activation
//   attention         heads kv_heads seq_q seq_kv head_dim causal
//   layer_norm        rows cols                            residual
//   rms_norm          rows cols                            residual
//   softmax           rows cols
//   embedding         entries size count
//   rope              heads seq head_dim
//   add, mul          count
//   concat            C1 C2 H W
//   transpose         rows cols
//
// A linear layer's weights are [outputs][inputs]. Causal attention aligns the queries with the last keys. A residual
// of a normalisation is added before it. concat joins channels. Activations are relu, relu6, gelu, gelu_tanh and silu.
// Sizes of filters and rows are those of the whole layer, not of a group.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "tuff/tuff.h"

namespace networks {

enum class Operation {
  conv2d,
  conv_transpose2d,
  max_pool,
  avg_pool,
  linear,
  attention,
  layer_norm,
  rms_norm,
  softmax,
  embedding,
  rope,
  add,
  mul,
  concat,
  transpose
};

struct Layer {
  Operation operation = Operation::add;
  std::vector<uint64_t> sizes;  // in the order of the table above
  uint64_t groups = 1;
  bool bias = false, residual = false, causal = false;
  int32_t activation = TUFF_ACTIVATION_NONE;
  uint64_t count = 1;  // how many such layers the network has
  int line = 0;        // in the file

  // The layer's line in canonical form: "conv2d 64 56 56 64 3 3 1 1 bias relu".
  std::string title() const;
  // For GEMM, convolution and attention: multiply-adds for one sample. For other operations: elements read.
  double work() const;
  // Elements of filters and matrices, without biases, tables and the weights of normalisations.
  uint64_t weights() const;
};

struct Network {
  std::string name;  // the file's name without .txt: "resnet50"
  std::vector<Layer> layers;
};

// Throws std::runtime_error with the place and the error: "resnet50.txt:7: …".
Network parse_network(const std::string& name, std::istream& text);
// Reads <name>.txt from this folder.
Network read_network(const std::string& name);
// The names of all networks in this folder.
std::vector<std::string> network_names();

// The same layer with smaller sizes, for a test. Extents and rows are halved first; once they are small, channels and
// columns follow, until work() is at most `work` or nothing is left to halve. Filters, strides, options and the
// proportion of groups to channels stay.
Layer reduced(Layer layer, double work);

}  // namespace networks
