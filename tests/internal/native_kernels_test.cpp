// Kernels in PTX: each option's text is assembled by NVIDIA's assembler, where scripts/test.sh has installed it. No GPU
// is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention/native/attention_backward_wgmma.hpp"
#include "kernels/attention/native/attention_decode.hpp"
#include "kernels/attention/native/attention_planes.hpp"
#include "kernels/attention/native/attention_wgmma.hpp"
#include "kernels/gemm/native/gemm_dmma.hpp"
#include "kernels/gemm/native/gemm_narrow.hpp"
#include "kernels/gemm/native/gemm_split.hpp"
#include "kernels/gemm/native/gemm_wgmma.hpp"
#include "kernels/native/elements.hpp"
#include "kernels/quant/native/qgemm_blocks.hpp"
#include "kernels/quant/native/qgemm_mma.hpp"
#include "kernels/quant/native/qgemm_wgmma.hpp"
#include "kernels/rnn/native/rnn_persistent.hpp"
#include "planning/status.hpp"
#include "support/sample.hpp"
#include "tuff/tuff.h"

namespace tuff {
namespace {

namespace fs = std::filesystem;

std::string text_of(const gemm::Wgmma& kernel) {
  return "type " + std::to_string(kernel.type) + " " + std::to_string(kernel.b_type) + " c_type " +
         std::to_string(kernel.c_type) + (kernel.scaled ? " scaled" : "") + (kernel.promoted ? " promoted" : "") +
         " trans " + std::to_string(kernel.trans_a) + std::to_string(kernel.trans_b) + " tile " +
         std::to_string(kernel.rows) + "x" + std::to_string(kernel.columns) + (kernel.edge ? " edge" : "") +
         (kernel.beta ? " beta" : "") + (kernel.vector ? " vector" : "") + " bias " + std::to_string(kernel.bias_axis) +
         (kernel.residual ? " residual" : "") + " windows " + std::to_string(kernel.windows) +
         (kernel.groups ? " groups" : "") + (kernel.valid ? " valid" : "") + (kernel.padded ? " padded" : "") +
         " activation " + std::to_string(kernel.activation);
}

// Convolutions: windows of A, or of B, which is then transposed.
void add_windows(gemm::Wgmma kernel, std::vector<gemm::Wgmma>& all) {
  if (kernel.trans_a || !kernel.trans_b || kernel.beta) return;
  for (const uint32_t windows : {1u, 2u}) {
    kernel.windows = windows;
    kernel.bias_axis = windows == 1 ? TUFF_BIAS_COLUMNS : TUFF_BIAS_ROWS;
    for (const bool residual : {false, true}) {
      // These are not planned: see has_registers().
      if (windows == 2 && residual && (!kernel.vector || kernel.c_type == TUFF_F32)) continue;
      if (windows == 2 && kernel.rows == 128 && kernel.columns == 256 && (residual || !kernel.vector)) continue;
      kernel.residual = residual;
      kernel.valid = kernel.padded = false;
      all.push_back(kernel);
      if (kernel.c_type != TUFF_F32 && ptx::activates(TUFF_ACTIVATION_GELU, kernel.c_type)) {
        kernel.activation = TUFF_ACTIVATION_GELU;
        all.push_back(kernel);
        kernel.activation = TUFF_ACTIVATION_NONE;
      }
      kernel.valid = true;
      all.push_back(kernel);
      kernel.valid = false;
      kernel.padded = true;
      if (windows != 1) continue;
      all.push_back(kernel);
      kernel.groups = true;
      all.push_back(kernel);
      kernel.groups = false;
    }
  }
}

// Gradients by filters: windows are rows of k.
void add_windows_of_k(gemm::Wgmma kernel, std::vector<gemm::Wgmma>& all) {
  if (!kernel.trans_a || kernel.trans_b || kernel.beta) return;
  kernel.windows = 3;
  kernel.padded = true;
  all.push_back(kernel);
}

// Gradients by inputs: B is the filter as it is stored.
void add_filters(gemm::Wgmma kernel, std::vector<gemm::Wgmma>& all) {
  if (kernel.trans_a || kernel.trans_b || kernel.beta) return;
  kernel.windows = 1;
  kernel.padded = true;
  all.push_back(kernel);
}

constexpr std::pair<uint32_t, uint32_t> kTiles[] = {{128, 64}, {128, 128}, {128, 256}, {64, 256}};

// For operands of 8 or 32 bits, whose rows run along k.
gemm::Wgmma along_k(int32_t type, int32_t c_type, std::pair<uint32_t, uint32_t> tile) {
  gemm::Wgmma kernel;
  kernel.type = kernel.b_type = type;
  kernel.c_type = c_type;
  kernel.trans_b = true;
  kernel.rows = tile.first, kernel.columns = tile.second;
  return kernel;
}

// 8-bit integers.
void add_integers(std::vector<gemm::Wgmma>& all) {
  for (const auto& tile : kTiles) {
    for (uint32_t bits = 0; bits < 4; ++bits) {
      gemm::Wgmma kernel = along_k(TUFF_I8, TUFF_I32, tile);
      kernel.edge = (bits & 1) != 0;
      kernel.vector = (bits & 2) != 0;
      all.push_back(kernel);
    }
  }
}

// 8-bit floats.
void add_float8(std::vector<gemm::Wgmma>& all) {
  for (const auto& tile : kTiles) {
    for (const int32_t c_type : {TUFF_F32, TUFF_F16, TUFF_BF16, TUFF_F8_E4M3, TUFF_F8_E5M2}) {
      for (uint32_t bits = 0; bits < 128; ++bits) {
        const bool bytes = c_type == TUFF_F8_E4M3 || c_type == TUFF_F8_E5M2;
        if (bytes && (bits & 32) != 0) continue;  // always stored as vectors
        gemm::Wgmma kernel = along_k((bits & 1) != 0 ? TUFF_F8_E4M3 : TUFF_F8_E5M2, c_type, tile);
        kernel.b_type = (bits & 2) != 0 ? TUFF_F8_E4M3 : TUFF_F8_E5M2;
        kernel.edge = (bits & 4) != 0;
        kernel.promoted = (bits & 8) != 0;
        kernel.scaled = (bits & 16) != 0;
        kernel.vector = bytes || (bits & 32) != 0;
        kernel.beta = !bytes && (bits & 64) != 0;
        kernel.bias_axis = kernel.beta ? TUFF_BIAS_COLUMNS : TUFF_BIAS_NONE;
        kernel.residual = kernel.beta;
        kernel.activation = bytes && (bits & 64) != 0 ? TUFF_ACTIVATION_RELU6 : TUFF_ACTIVATION_NONE;
        all.push_back(kernel);
      }
    }
  }
}

std::string text_of(const gemm::Split& kernel) {
  std::string text = "f32 to " + std::to_string(kernel.c_type) + " bias " + std::to_string(kernel.bias_axis) +
                     " activation " + std::to_string(kernel.activation) + " part " +
                     std::to_string(static_cast<int>(kernel.c_part)) + " windows " + std::to_string(kernel.windows);
  for (const auto& [set, name] : {std::pair{kernel.trans_a, " trans_a"},
                                  {kernel.trans_b, " trans_b"},
                                  {kernel.quads_a, " quads_a"},
                                  {kernel.quads_b, " quads_b"},
                                  {kernel.edge, " edge"},
                                  {kernel.beta, " beta"},
                                  {kernel.residual, " residual"},
                                  {kernel.scaled, " scaled"},
                                  {kernel.vector, " vector"}}) {
    if (set) text += name;
  }
  return text;
}

// f32, as three numbers of bf16 each.
std::vector<gemm::Split> all_split_options() {
  std::vector<gemm::Split> all;
  for (const int32_t c_type : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
    for (uint32_t bits = 0; bits < 1024; ++bits) {
      gemm::Split kernel;
      kernel.c_type = c_type;
      kernel.trans_a = (bits & 1) != 0, kernel.trans_b = (bits & 2) != 0;
      kernel.quads_a = (bits & 4) != 0, kernel.quads_b = (bits & 8) != 0;
      kernel.edge = (bits & 16) != 0, kernel.vector = (bits & 32) != 0, kernel.beta = (bits & 64) != 0;
      kernel.bias_axis = (bits & 128) != 0 ? TUFF_BIAS_ROWS : TUFF_BIAS_NONE;
      kernel.residual = (bits & 256) != 0;
      kernel.activation = kernel.residual ? TUFF_ACTIVATION_RELU6 : TUFF_ACTIVATION_NONE;
      kernel.scaled = (bits & 512) != 0;
      all.push_back(kernel);
      if (!kernel.scaled && !kernel.trans_a && kernel.trans_b && !kernel.beta && (kernel.quads_a || kernel.quads_b)) {
        gemm::Split with = kernel;
        with.windows = kernel.quads_a ? 1 : 2, with.padded = true;
        all.push_back(with);
      }
      if (kernel.scaled || kernel.residual) continue;
      for (const GemmPart part : {GemmPart::lower, GemmPart::upper}) {
        kernel.c_part = part;
        all.push_back(kernel);
      }
    }
  }
  return all;
}

// f32, as TF32.
void add_tf32(std::vector<gemm::Wgmma>& all) {
  for (const auto& tile : kTiles) {
    for (const int32_t c_type : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
      for (uint32_t bits = 0; bits < 32; ++bits) {
        gemm::Wgmma kernel = along_k(TUFF_F32, c_type, tile);
        kernel.edge = (bits & 1) != 0;
        kernel.vector = (bits & 2) != 0;
        kernel.beta = (bits & 4) != 0;
        kernel.bias_axis = (bits & 8) != 0 ? TUFF_BIAS_COLUMNS : TUFF_BIAS_NONE;
        kernel.residual = (bits & 16) != 0;
        all.push_back(kernel);
      }
    }
  }
}

std::vector<gemm::Wgmma> all_options() {
  std::vector<gemm::Wgmma> all;
  add_integers(all);
  add_tf32(all);
  add_float8(all);
  for (const int32_t type : {TUFF_F16, TUFF_BF16}) {
    for (const int32_t c_type : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
      for (const auto& [rows, columns] : kTiles) {
        for (uint32_t bits = 0; bits < 32; ++bits) {
          gemm::Wgmma kernel;
          kernel.type = kernel.b_type = type;
          kernel.c_type = c_type;
          kernel.rows = rows;
          kernel.columns = columns;
          kernel.trans_a = (bits & 1) != 0;
          kernel.trans_b = (bits & 2) != 0;
          kernel.edge = (bits & 4) != 0;
          kernel.beta = (bits & 8) != 0;
          kernel.vector = (bits & 16) != 0;
          all.push_back(kernel);
          add_windows(kernel, all);
          add_windows_of_k(kernel, all);
          add_filters(kernel, all);
          if ((bits & 3) != 0) continue;  // the epilogue does not depend on transposes
          for (const int32_t axis : {TUFF_BIAS_NONE, TUFF_BIAS_ROWS, TUFF_BIAS_COLUMNS}) {
            for (const bool residual : {false, true}) {
              for (int32_t activation = TUFF_ACTIVATION_NONE; activation <= TUFF_ACTIVATION_RELU6; ++activation) {
                if (!ptx::activates(activation, c_type)) continue;
                kernel.bias_axis = axis;
                kernel.residual = residual;
                kernel.activation = activation;
                if (axis != 0 || residual || activation != 0) all.push_back(kernel);
              }
            }
          }
        }
      }
    }
  }
  return all;
}

std::string text_of(const gemm::Dmma& kernel) {
  return "trans " + std::to_string(kernel.trans_a) + std::to_string(kernel.trans_b) + " tile " +
         std::to_string(kernel.rows) + "x" + std::to_string(kernel.columns) + (kernel.edge ? " edge" : "") +
         (kernel.beta ? " beta" : "") + (kernel.pairs ? " pairs" : "") + (kernel.vector ? " vector" : "") + " part " +
         std::to_string(static_cast<int>(kernel.c_part));
}

std::vector<gemm::Dmma> all_dmma_options() {
  constexpr std::pair<uint32_t, uint32_t> kExtents[] = {{64, 64}, {128, 64}, {128, 128}};
  std::vector<gemm::Dmma> all;
  for (const auto& [rows, columns] : kExtents) {
    for (uint32_t bits = 0; bits < 3 * 64; ++bits) {
      all.push_back({.trans_a = (bits & 1) != 0,
                     .trans_b = (bits & 2) != 0,
                     .rows = rows,
                     .columns = columns,
                     .edge = (bits & 4) != 0,
                     .beta = (bits & 8) != 0,
                     .c_part = static_cast<GemmPart>(bits / 64),
                     .pairs = (bits & 16) != 0,
                     .vector = (bits & 32) != 0});
    }
  }
  return all;
}

std::string text_of(const gemm::Narrow& kernel) {
  return "types " + std::to_string(kernel.type) + " " + std::to_string(kernel.short_type) + " c_type " +
         std::to_string(kernel.c_type) + (kernel.scaled ? " scaled" : "") + " along k " +
         std::to_string(kernel.long_along_k) + std::to_string(kernel.short_along_k) + " tile " +
         std::to_string(kernel.rows) + "x" + std::to_string(kernel.columns) + " blocks " +
         std::to_string(kernel.blocks) + (kernel.transposed ? " transposed" : "") + (kernel.beta ? " beta" : "") +
         " bias " + std::to_string(kernel.bias_axis) + (kernel.residual ? " residual" : "") + " activation " +
         std::to_string(kernel.activation);
}

std::string text_of(const quant::Mma& kernel) {
  return "type " + std::to_string(kernel.type) + " c_type " + std::to_string(kernel.c_type) + " bits " +
         std::to_string(kernel.bits) + (kernel.negative ? " signed" : "") + " scales " + std::to_string(kernel.scales) +
         " of " + std::to_string(kernel.scale_type) + " columns " + std::to_string(kernel.columns) + " tiles " +
         std::to_string(kernel.tiles) + (kernel.whole ? " whole" : "") + (kernel.zeros ? " zeros" : "") +
         (kernel.bias ? " bias" : "") + (kernel.residual ? " residual" : "") + " activation " +
         std::to_string(kernel.activation);
}

std::vector<quant::Mma> all_qgemm_options() {
  std::vector<quant::Mma> all;
  for (const int32_t type : {TUFF_F16, TUFF_BF16}) {
    for (const int32_t c_type : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
      for (uint32_t bits = 0; bits < 128; ++bits) {
        for (uint32_t scales = 0; scales < 3; ++scales) {
          for (const uint32_t columns : {8u, 16u, 32u}) {
            quant::Mma kernel;
            kernel.type = type;
            kernel.c_type = c_type;
            kernel.bits = (bits & 1) != 0 ? 8 : 4;
            kernel.negative = (bits & 2) != 0;
            kernel.scales = scales;
            kernel.scale_type = scales == 2 ? type : c_type;
            kernel.columns = columns;
            kernel.tiles = (bits & 4) != 0 ? 2 : 1;
            kernel.whole = (bits & 8) != 0;
            kernel.bias = (bits & 16) != 0;
            kernel.residual = (bits & 32) != 0;
            kernel.zeros = (bits & 64) != 0;
            kernel.activation = kernel.bias && c_type != TUFF_F32 ? TUFF_ACTIVATION_GELU : TUFF_ACTIVATION_NONE;
            if (kernel.legal()) all.push_back(kernel);
          }
        }
      }
    }
  }
  return all;
}

std::string text_of(const rnn::Persistent& kernel) {
  return "type " + std::to_string(kernel.type) + " cell " + std::to_string(kernel.cell) + (kernel.onnx ? " onnx" : "") +
         (kernel.bias ? " bias" : "") + (kernel.clip ? " clip" : "") + (kernel.peepholes ? " peepholes" : "") +
         (kernel.lengths ? " lengths" : "") + (kernel.output ? " output" : "") + " eights " +
         std::to_string(kernel.eights) + " steps " + std::to_string(kernel.steps_k) + " held " +
         std::to_string(kernel.held) + (kernel.whole ? " whole" : "") + (kernel.alone ? " alone" : "");
}

std::vector<rnn::Persistent> all_rnn_options() {
  std::vector<rnn::Persistent> all;
  for (const int32_t type : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
    for (const int32_t cell : {TUFF_RNN_CELL_LSTM, TUFF_RNN_CELL_GRU, TUFF_RNN_CELL_TANH}) {
      for (const uint32_t eights : {1u, 2u, 4u}) {
        for (const uint32_t steps : {1u, 3u, 8u, 11u, 16u}) {
          for (uint32_t bits = steps; bits < 256; bits += 11) {  // some of all
            rnn::Persistent kernel;
            kernel.type = type, kernel.cell = cell, kernel.eights = eights, kernel.steps_k = steps;
            kernel.onnx = (bits & 1) != 0, kernel.bias = (bits & 2) != 0, kernel.clip = (bits & 4) != 0;
            kernel.peepholes = (bits & 8) != 0, kernel.lengths = (bits & 16) != 0, kernel.output = (bits & 32) != 0;
            kernel.whole = (bits & 64) != 0, kernel.alone = (bits & 128) != 0;
            while (!kernel.legal() && kernel.held < steps) ++kernel.held;
            if (kernel.legal()) all.push_back(kernel);
          }
        }
      }
    }
  }
  return all;
}

std::string text_of(const quant::Wgmma& kernel) {
  return "type " + std::to_string(kernel.type) + " c_type " + std::to_string(kernel.c_type) + " format " +
         std::to_string(kernel.format) + " scales " + std::to_string(kernel.scales) + " of " +
         std::to_string(kernel.scale_type) + ", " + std::to_string(kernel.per_step) + " in a step, period " +
         std::to_string(kernel.period) + (kernel.zeros ? " zeros" : "") + " tile " + std::to_string(kernel.rows) + "x" +
         std::to_string(kernel.columns) + (kernel.edge ? " edge" : "") + (kernel.vector ? " vector" : "") +
         (kernel.bias ? " bias" : "") + (kernel.residual ? " residual" : "") + " activation " +
         std::to_string(kernel.activation);
}

// Some of the tiles and ends of kernels that read weights in one way: others for each way.
void add_qgemm_ends(quant::Wgmma kernel, std::vector<quant::Wgmma>& all) {
  constexpr std::pair<uint32_t, uint32_t> kWideTiles[] = {{64, 16},  {64, 32},  {64, 64},   {64, 128}, {128, 16},
                                                          {128, 32}, {128, 64}, {128, 128}, {128, 256}};
  constexpr int32_t kActivations[] = {TUFF_ACTIVATION_NONE, TUFF_ACTIVATION_GELU, TUFF_ACTIVATION_RELU6};
  static uint32_t turn = 0;
  for (const auto& [rows, columns] : kWideTiles) {
    for (const int32_t c_type : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
      for (uint32_t bits = 0; bits < 16; ++bits) {
        if (++turn % 127 != 0) continue;
        kernel.rows = rows, kernel.columns = columns;
        kernel.c_type = c_type;
        kernel.edge = (bits & 1) != 0;
        kernel.bias = (bits & 2) != 0;
        kernel.residual = (bits & 4) != 0;
        kernel.vector = (bits & 8) != 0;
        kernel.activation = kActivations[turn / 127 % 3];
        if (kernel.legal()) all.push_back(kernel);
      }
    }
  }
}

std::vector<quant::Wgmma> all_wide_qgemm_options() {
  std::vector<quant::Wgmma> all;
  constexpr int32_t kFormats[] = {TUFF_QUANT_I8,   TUFF_QUANT_U8,   TUFF_QUANT_I4,  TUFF_QUANT_U4,
                                  TUFF_QUANT_Q4_0, TUFF_QUANT_Q8_0, TUFF_QUANT_Q4_K};
  const auto add = [&](int32_t type, int32_t format, uint32_t scales, int32_t scale_type) {
    for (const uint32_t per_step : {1u, 2u, 4u}) {
      for (const uint32_t period : {0u, 2u, 4u, 8u, 16u, 32u}) {
        for (const bool zeros : {false, true}) {
          quant::Wgmma kernel;
          kernel.type = type, kernel.format = format, kernel.scales = scales, kernel.scale_type = scale_type;
          kernel.per_step = per_step, kernel.period = period, kernel.zeros = zeros;
          add_qgemm_ends(kernel, all);
        }
      }
    }
  };
  for (const int32_t type : {TUFF_F16, TUFF_BF16}) {
    for (const int32_t format : kFormats) {
      for (uint32_t scales = 0; scales < 3; ++scales) {
        for (const int32_t scale_type : {TUFF_F32, TUFF_F16, TUFF_BF16}) add(type, format, scales, scale_type);
      }
    }
  }
  return all;
}

// 8-bit floats, also beside 16 bits.
void add_narrow_float8(std::vector<gemm::Narrow>& all) {
  constexpr int32_t kFloats8[] = {TUFF_F8_E4M3, TUFF_F8_E5M2};
  for (const int32_t type : kFloats8) {
    for (const int32_t short_type : {TUFF_F8_E4M3, TUFF_F8_E5M2, TUFF_F16, TUFF_BF16}) {
      for (const uint32_t rows : {32u, 48u, 64u, 80u, 96u, 112u, 128u}) {
        for (const uint32_t columns : {8u, 16u, 32u, 64u}) {
          for (uint32_t bits = 0; bits < 8; ++bits) {
            gemm::Narrow kernel;
            kernel.type = type, kernel.short_type = short_type;
            kernel.rows = rows, kernel.columns = columns;
            kernel.long_along_k = (bits & 1) != 0;
            kernel.short_along_k = true;
            kernel.transposed = (bits & 2) != 0;
            kernel.blocks = (bits & 4) != 0 ? 1 : 2;
            if (!kernel.fits()) continue;
            for (const int32_t c_type : {TUFF_F32, TUFF_F16, TUFF_BF16, TUFF_F8_E4M3, TUFF_F8_E5M2}) {
              kernel.c_type = c_type;
              kernel.scaled = !kernel.transposed;
              all.push_back(kernel);
            }
          }
        }
      }
    }
  }
}

std::vector<gemm::Narrow> all_narrow_options() {
  std::vector<gemm::Narrow> all;
  add_narrow_float8(all);
  for (const int32_t type : {TUFF_F16, TUFF_BF16}) {
    for (const int32_t c_type : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
      for (const uint32_t rows : {32u, 48u, 64u, 80u, 96u, 112u, 128u}) {
        for (const uint32_t columns : {8u, 16u, 32u, 64u}) {
          for (const uint32_t blocks : {1u, 2u}) {
            for (uint32_t bits = 0; bits < 8; ++bits) {
              gemm::Narrow kernel;
              kernel.type = kernel.short_type = type;
              kernel.c_type = c_type;
              kernel.rows = rows;
              kernel.columns = columns;
              kernel.blocks = blocks;
              kernel.long_along_k = (bits & 1) != 0;
              kernel.short_along_k = (bits & 2) != 0;
              kernel.transposed = (bits & 4) != 0;
              if (!kernel.fits()) continue;
              all.push_back(kernel);
              if ((bits & 3) != 3 || rows != 64) continue;  // the epilogue depends on neither transposes nor rows
              for (uint32_t more = 1; more < 72; ++more) {
                kernel.beta = more % 2 != 0;
                kernel.residual = more / 2 % 2 != 0;
                kernel.bias_axis = static_cast<int32_t>(more / 4 % 3);
                kernel.activation = static_cast<int32_t>(more / 12);
                if (!ptx::activates(kernel.activation, c_type)) continue;
                all.push_back(kernel);
              }
            }
          }
        }
      }
    }
  }
  return all;
}

std::string text_of(const quant::Blocks& kernel) {
  return "scales of type " + std::to_string(kernel.scale_type) + " blocks of a step " + std::to_string(kernel.per_step);
}
std::vector<quant::Blocks> all_block_options() {
  std::vector<quant::Blocks> all;
  for (const int32_t type : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
    for (const uint32_t per_step : {1u, 2u, 4u}) all.push_back({type, per_step});
  }
  return all;
}

std::string text_of(const attention::Wgmma& kernel) {
  return "type " + std::to_string(kernel.type) + " head_dim " + std::to_string(kernel.head_dim) + " " +
         std::to_string(kernel.head_dim_v) + " keys " + std::to_string(kernel.keys) + (kernel.hiding ? " hiding" : "") +
         " lengths " + std::to_string(kernel.lengths) + (kernel.lse ? " lse" : "") + " bias " +
         std::to_string(kernel.bias) + (kernel.mask ? " mask" : "") + (kernel.cap ? " cap" : "") +
         (kernel.pieces ? " pieces" : "");
}

// With every bias, mask and soft cap; bias and mask in pieces and by elements. `legal` may change a kernel.
template <typename Kernel, typename Legal>
void add_score_options(const Kernel& plain, std::vector<Kernel>& all, const Legal& legal) {
  const int32_t half = plain.type == TUFF_F32 ? int32_t{TUFF_F16} : plain.type;
  for (const int32_t bias : {0, int32_t{TUFF_F32}, half}) {
    for (uint32_t bits = 0; bits < 8; ++bits) {
      Kernel kernel = plain;
      kernel.bias = bias;
      kernel.mask = (bits & 1) != 0, kernel.cap = (bits & 2) != 0, kernel.pieces = (bits & 4) != 0;
      if (!kernel.options() || (kernel.pieces && bias == 0 && !kernel.mask)) continue;
      if (legal(kernel)) all.push_back(kernel);
    }
  }
}

template <typename Kernel>
std::vector<Kernel> all_attention_options(const std::vector<int32_t>& types,
                                          const std::vector<std::pair<uint32_t, uint32_t>>& dims) {
  std::vector<Kernel> all;
  for (const int32_t type : types) {
    for (const auto& [head_dim, head_dim_v] : dims) {
      for (uint32_t bits = 0; bits < 8; ++bits) {
        for (const uint32_t lengths : {0u, 1u, 2u, 3u, 5u, 6u, 7u}) {
          Kernel kernel;
          kernel.type = type;
          kernel.head_dim = head_dim;
          kernel.head_dim_v = head_dim_v;
          kernel.keys = (bits & 1) != 0 ? kernel.max_keys() : kernel.max_keys() - 16;
          kernel.hiding = (bits & 2) != 0;
          kernel.lse = (bits & 4) != 0;
          kernel.lengths = lengths;
          all.push_back(kernel);
          const bool simple = lengths == 0 && !kernel.lse, full = lengths == 7 && kernel.lse && kernel.hiding;
          if (!simple && !full) continue;
          const bool fewer = kernel.keys % 32 != 0;
          add_score_options(kernel, all, [fewer](Kernel& with) {
            with.keys = with.max_keys();
            if (fewer && with.keys == Kernel::kMinKeys) return false;
            if (fewer) with.keys -= 16;
            return true;
          });
        }
      }
    }
  }
  return all;
}

std::vector<attention::Wgmma> all_attention_options() {
  return all_attention_options<attention::Wgmma>(
      {TUFF_F16, TUFF_BF16}, {{8, 8}, {40, 120}, {64, 64}, {80, 72}, {128, 128}, {192, 128}, {256, 256}, {256, 8}});
}
std::vector<attention::Planes> all_attention_of_floats_options() {
  return all_attention_options<attention::Planes>(
      {TUFF_F32}, {{4, 8}, {36, 120}, {64, 64}, {80, 72}, {100, 16}, {128, 128}, {128, 64}});
}

std::string text_of(const attention::Decode& kernel) {
  return "type " + std::to_string(kernel.type) + " head_dim " + std::to_string(kernel.head_dim) + " " +
         std::to_string(kernel.head_dim_v) + " rows " + std::to_string(kernel.rows) + " lengths " +
         std::to_string(kernel.lengths) + (kernel.parts ? " parts" : "") + (kernel.hiding ? " hiding" : "") + " bias " +
         std::to_string(kernel.bias) + (kernel.mask ? " mask" : "") + (kernel.cap ? " cap" : "") +
         (kernel.pieces ? " pieces" : "") + " stored " + std::to_string(kernel.k_stored) + " " +
         std::to_string(kernel.v_stored) + " in pieces of " + std::to_string(kernel.k_piece) + " " +
         std::to_string(kernel.v_piece);
}

// The kernel with keys and values that are quantised, as far as it has such.
void add_stored(const attention::Decode& kernel, std::vector<attention::Decode>& all) {
  constexpr std::pair<int32_t, int32_t> kStored[] = {{TUFF_QUANT_Q8_0, TUFF_QUANT_Q8_0},
                                                     {TUFF_QUANT_Q4_0, TUFF_QUANT_Q4_0},
                                                     {TUFF_QUANT_Q8_0, TUFF_QUANT_Q4_0},
                                                     {TUFF_F8_E4M3, TUFF_F8_E4M3},
                                                     {TUFF_F8_E5M2, TUFF_F8_E5M2},
                                                     {TUFF_QUANT_Q8_0, 0},
                                                     {0, TUFF_QUANT_Q4_0},
                                                     {TUFF_F8_E4M3, 0}};
  for (const auto& [keys, values] : kStored) {
    for (const uint32_t piece : {0u, 4u, 8u, 16u}) {
      attention::Decode with = kernel;
      with.k_stored = keys, with.v_stored = values;
      if (keys != 0) with.k_piece = piece;
      if (values != 0) with.v_piece = piece;
      if (with.legal()) all.push_back(with);
    }
  }
}

std::vector<attention::Decode> all_decode_options() {
  constexpr std::pair<uint32_t, uint32_t> kDims[] = {{16, 16},   {64, 64},   {80, 96},  {128, 128},
                                                     {192, 128}, {256, 256}, {256, 16}, {208, 208}};
  std::vector<attention::Decode> all;
  for (const int32_t type : {TUFF_F16, TUFF_BF16}) {
    for (const auto& [head_dim, head_dim_v] : kDims) {
      for (const uint32_t rows : {8u, 16u, 32u, 64u}) {
        for (const uint32_t lengths : {0u, 1u, 2u, 3u, 5u, 6u, 7u}) {
          for (uint32_t bits = 0; bits < 4; ++bits) {
            attention::Decode kernel;
            kernel.type = type;
            kernel.head_dim = head_dim, kernel.head_dim_v = head_dim_v;
            kernel.rows = rows, kernel.lengths = lengths;
            kernel.parts = (bits & 1) != 0, kernel.hiding = (bits & 2) != 0;
            if (!kernel.legal()) continue;
            all.push_back(kernel);
            if (lengths != 0 && lengths != 7) continue;
            if (bits == lengths % 3) add_stored(kernel, all);
            if (rows < 16) continue;
            std::vector<attention::Decode> with_options;
            add_score_options(kernel, with_options, [](const attention::Decode& with) { return with.legal(); });
            for (const attention::Decode& with : with_options) {
              all.push_back(with);
              if (with.bias == TUFF_F32 && with.mask && with.cap && bits == 3) add_stored(with, all);
            }
          }
        }
      }
    }
  }
  return all;
}

std::string text_of(const attention_backward::Wgmma& kernel) {
  return "type " + std::to_string(kernel.type) + " head_dim " + std::to_string(kernel.head_dim) + " " +
         std::to_string(kernel.head_dim_v) + (kernel.keys_side ? " keys" : " rows") + (kernel.first ? " first" : "") +
         (kernel.second ? " second" : "") + " bias " + std::to_string(kernel.bias) + (kernel.mask ? " mask" : "") +
         " piece " + std::to_string(kernel.piece) + " slopes " + std::to_string(kernel.slopes);
}

void add_sides(std::vector<attention_backward::Wgmma>& all, attention_backward::Wgmma kernel) {
  const auto add = [&] {
    if (kernel.fits() && kernel.stages() >= kernel.kMinStages) all.push_back(kernel);
  };
  kernel.first = true;
  for (kernel.slopes = 0; kernel.slopes <= (kernel.bias != 0 ? 2u : 0u); ++kernel.slopes) add();
  kernel.slopes = 0, kernel.keys_side = true;
  for (uint32_t wanted = 1; wanted < 4; ++wanted) {
    kernel.first = (wanted & 1) != 0, kernel.second = (wanted & 2) != 0;
    add();
  }
}

std::vector<attention_backward::Wgmma> all_backward_options() {
  std::vector<attention_backward::Wgmma> all;
  for (const int32_t type : {TUFF_F16, TUFF_BF16}) {
    for (uint32_t head_dim = 8; head_dim <= attention_backward::Wgmma::kMaxHeadDim; head_dim += 8) {
      for (const uint32_t head_dim_v : std::set<uint32_t>{head_dim, 8, 64, 96, 128}) {
        for (const int32_t bias : std::set<int32_t>{0, TUFF_F16, TUFF_BF16}) {
          for (const bool mask : {false, true}) {
            for (const uint32_t piece : bias != 0 || mask ? std::vector<uint32_t>{16, 4} : std::vector<uint32_t>{16}) {
              add_sides(all, {.type = type,
                              .head_dim = head_dim,
                              .head_dim_v = head_dim_v,
                              .bias = bias,
                              .mask = mask,
                              .piece = piece});
            }
          }
        }
      }
    }
  }
  return all;
}

// What a command prints, and its exit status.
std::pair<int, std::string> run(const std::string& command) {
  std::pair<int, std::string> result{-1, ""};
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  char part[512];
  while (const size_t bytes = std::fread(part, 1, sizeof part, pipe)) result.second.append(part, bytes);
  result.first = pclose(pipe);
  return result;
}

// A kernel takes ptxas from a tenth of a second to several, and on a busy machine many times that. So a test takes a
// sample, by chance, and only as much of it as fits into this time.
std::chrono::seconds sample_time() { return std::chrono::seconds(tuff_test::sample().share == 1 ? 4 : 2); }

// Bytes of registers that are kept in memory. attention_planes does so with limits of a tile, which it reads once in a
// step of 6,000 cycles: smaller steps would cost more.
uint32_t most_spilled(const KernelSource& written) { return &written == &attention::planes_source ? 128 : 0; }

uint32_t spilled(const std::string& output) {
  const size_t at = output.find(" bytes spill stores");
  if (at == std::string::npos) return UINT32_MAX;
  return static_cast<uint32_t>(std::atoi(output.c_str() + output.find_last_not_of("0123456789", at - 1) + 1));
}

template <typename Kernel>
void assemble(const std::vector<Kernel>& all, const std::vector<size_t>& which, const KernelSource& written,
              std::optional<std::chrono::seconds> most) {
  const std::string assembler = TUFF_TEST_PTXAS;
  if (assembler.empty()) GTEST_SKIP() << "not run: ptxas is not installed (scripts/test.sh fetches it from PyPI)";
  std::string pattern = (fs::temp_directory_path() / "tuff-ptx-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const std::string source = pattern + "/kernel.ptx";
  const auto start = std::chrono::steady_clock::now();
  size_t done = 0;
  for (const size_t i : which) {
    if (done != 0 && most && std::chrono::steady_clock::now() - start > *most) break;
    SCOPED_TRACE("number " + std::to_string(i) + ": " + text_of(all[i]));
    const NativeKernel kernel = written.write(all[i].request());
    EXPECT_LE(kernel.shared_bytes, 227u * 1024) << "a multiprocessor's shared memory";
    std::ofstream file(source);
    file << kernel.text;
    file.close();
    ASSERT_TRUE(file) << source << " could not be written: " << std::strerror(errno);
    const auto [status, output] = run("'" + assembler + "' -arch=sm_90a -v -o /dev/null '" + source + "'");
    EXPECT_EQ(status, 0) << output;
    EXPECT_LE(spilled(output), most_spilled(written)) << output;
    // "Potential Performance Loss: wgmma.mma_async instructions are serialized", "warpgroup.arrive is injected"
    EXPECT_EQ(output.find("serialized"), std::string::npos) << output;
    EXPECT_EQ(output.find("injected"), std::string::npos) << output;
    EXPECT_EQ(output.find("ignored"), std::string::npos) << output;  // setmaxnreg
    EXPECT_EQ(output.find("warning"), std::string::npos) << output;
    ++done;
  }
  fs::remove_all(pattern);
  std::printf("%zu of %zu kernels assembled\n", done, all.size());
}

// TUFF_TEST_PTX=first:step assembles every step-th kernel from the first on, however long that takes.
template <typename Kernel>
void assemble_some(const std::vector<Kernel>& all, const KernelSource& written, size_t stride = 80) {
  std::vector<size_t> which;
  if (const char* const wanted = std::getenv("TUFF_TEST_PTX")) {
    size_t first = 0, step = 0;
    ASSERT_EQ(std::sscanf(wanted, "%zu:%zu", &first, &step), 2) << wanted;
    ASSERT_NE(step, 0u);
    for (size_t i = first; i < all.size(); i += step) which.push_back(i);
    return assemble(all, which, written, std::nullopt);
  }
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (size_t i = random() % stride; i < all.size(); i += stride) which.push_back(i);
  std::shuffle(which.begin(), which.end(), random);
  assemble(all, which, written, sample_time());
}

TEST(NativeKernels, GemmAssembles) { assemble_some(all_options(), gemm::wgmma_source); }
TEST(NativeKernels, GemmOfIntegersAssembles) {
  std::vector<gemm::Wgmma> all;
  add_integers(all);
  assemble_some(all, gemm::wgmma_source, 2);
}
TEST(NativeKernels, GemmOfFloats8Assembles) {
  std::vector<gemm::Wgmma> all;
  add_float8(all);
  assemble_some(all, gemm::wgmma_source);
}
TEST(NativeKernels, GemmOfTf32Assembles) {
  std::vector<gemm::Wgmma> all;
  add_tf32(all);
  assemble_some(all, gemm::wgmma_source, 40);
}
TEST(NativeKernels, GemmOfFloatsAssembles) { assemble_some(all_split_options(), gemm::split_source, 40); }
TEST(NativeKernels, GemmOfDoublesAssembles) { assemble_some(all_dmma_options(), gemm::dmma_source, 20); }
TEST(NativeKernels, GemmOfFewRowsAssembles) { assemble_some(all_narrow_options(), gemm::narrow_source, 100); }
TEST(NativeKernels, GemmOfFewRowsOfFloats8Assembles) {
  std::vector<gemm::Narrow> all;
  add_narrow_float8(all);
  assemble_some(all, gemm::narrow_source, 20);
}
TEST(NativeKernels, QgemmAssembles) { assemble_some(all_qgemm_options(), quant::mma_source, 12); }
TEST(NativeKernels, RnnAssembles) { assemble_some(all_rnn_options(), rnn::persistent_source, 40); }
TEST(NativeKernels, QgemmOfManyRowsAssembles) { assemble_some(all_wide_qgemm_options(), quant::wgmma_source, 30); }
TEST(NativeKernels, QgemmOfBlocksAssembles) { assemble_some(all_block_options(), quant::blocks_source, 1); }
TEST(NativeKernels, AttentionAssembles) { assemble_some(all_attention_options(), attention::wgmma_source); }
TEST(NativeKernels, AttentionOfFloatsAssembles) {
  assemble_some(all_attention_of_floats_options(), attention::planes_source);
}
TEST(NativeKernels, AttentionBackwardAssembles) {
  assemble_some(all_backward_options(), attention_backward::wgmma_source);
}
TEST(NativeKernels, DecodeAssembles) { assemble_some(all_decode_options(), attention::decode_source); }

template <typename Kernel>
void check_requests(const std::vector<Kernel>& all, const KernelSource& written) {
  std::set<std::string> texts;
  size_t requested = 0;
  for (const Kernel& kernel : all) {
    if (!tuff_test::in_sample(text_of(kernel), 16)) continue;
    ++requested;
    const KernelRequest request = kernel.request();
    EXPECT_NO_THROW(check_defines(request));
    EXPECT_EQ(text_of(Kernel::read(request)), text_of(kernel));
    texts.insert(written.write(request).text);
  }
  EXPECT_EQ(texts.size(), requested) << "each option changes the text";
}

TEST(NativeKernels, OptionsSurviveTheRequest) {
  check_requests(all_options(), gemm::wgmma_source);
  check_requests(all_split_options(), gemm::split_source);
  check_requests(all_dmma_options(), gemm::dmma_source);
  check_requests(all_narrow_options(), gemm::narrow_source);
  check_requests(all_attention_options(), attention::wgmma_source);
  check_requests(all_attention_of_floats_options(), attention::planes_source);
  check_requests(all_decode_options(), attention::decode_source);
  check_requests(all_backward_options(), attention_backward::wgmma_source);
  check_requests(all_qgemm_options(), quant::mma_source);
  check_requests(all_wide_qgemm_options(), quant::wgmma_source);
  check_requests(all_block_options(), quant::blocks_source);
  check_requests(all_rnn_options(), rnn::persistent_source);
}

// As they may come from a damaged list of kernels on disk.
TEST(NativeKernels, IllegalOptionsAreErrors) {
  KernelRequest none(gemm::wgmma_source);
  EXPECT_THROW(gemm::wgmma_source.write(none), Error);
  EXPECT_THROW(check_defines(none), Error);
  gemm::Wgmma kernel;
  kernel.type = TUFF_F16;
  kernel.c_type = TUFF_F16;
  for (const uint32_t columns : {0u, 1u, 96u, 512u}) {
    kernel.columns = columns;
    EXPECT_THROW(check_defines(kernel.request()), Error) << columns;
  }
  kernel.rows = kernel.columns = 64;  // each value is legal, the tile is not
  EXPECT_NO_THROW(check_defines(kernel.request()));
  EXPECT_THROW(gemm::wgmma_source.write(kernel.request()), Error);
  gemm::Narrow narrow;
  narrow.type = narrow.short_type = narrow.c_type = TUFF_F16;
  narrow.long_along_k = true;
  narrow.rows = 112, narrow.columns = 64, narrow.blocks = 1;  // too many sums
  EXPECT_NO_THROW(check_defines(narrow.request()));
  EXPECT_THROW(gemm::narrow_source.write(narrow.request()), Error);
  narrow.columns = 32;
  EXPECT_NO_THROW(gemm::narrow_source.write(narrow.request()));
  narrow.blocks = 2;  // too little memory
  EXPECT_THROW(gemm::narrow_source.write(narrow.request()), Error);
  narrow.blocks = 1, narrow.long_along_k = false;  // lines of 112 elements
  EXPECT_THROW(gemm::narrow_source.write(narrow.request()), Error);
  narrow.rows = 64, narrow.short_type = TUFF_BF16;  // beside f16
  EXPECT_NO_THROW(check_defines(narrow.request()));
  EXPECT_THROW(gemm::narrow_source.write(narrow.request()), Error);
  narrow.type = TUFF_F8_E4M3;  // a short operand across k
  EXPECT_THROW(gemm::narrow_source.write(narrow.request()), Error);
  narrow.short_along_k = true;
  EXPECT_NO_THROW(gemm::narrow_source.write(narrow.request()));
  narrow.c_type = TUFF_F8_E5M2, narrow.beta = true;  // elements of 8 bits are not read
  EXPECT_THROW(gemm::narrow_source.write(narrow.request()), Error);
  rnn::Persistent layer;
  layer.type = TUFF_BF16, layer.eights = 4, layer.steps_k = 10;  // more weights than shared memory has room for
  EXPECT_NO_THROW(check_defines(layer.request()));
  EXPECT_THROW(rnn::persistent_source.write(layer.request()), Error);
  layer.held = 1;
  EXPECT_NO_THROW(rnn::persistent_source.write(layer.request()));
  layer.steps_k = 16, layer.held = 8;  // and registers
  EXPECT_THROW(rnn::persistent_source.write(layer.request()), Error);
  layer.steps_k = 1, layer.held = 2;  // more than there are
  EXPECT_THROW(rnn::persistent_source.write(layer.request()), Error);
  layer.held = 0, layer.cell = TUFF_RNN_CELL_GRU, layer.peepholes = true;
  EXPECT_THROW(rnn::persistent_source.write(layer.request()), Error);
  layer.cell = TUFF_RNN_CELL_RELU;
  EXPECT_THROW(check_defines(layer.request()), Error);
  layer.cell = TUFF_RNN_CELL_LSTM, layer.eights = 3;
  EXPECT_THROW(check_defines(layer.request()), Error);
  attention::Wgmma wide;
  wide.type = TUFF_F16;
  wide.head_dim = wide.head_dim_v = 256;
  wide.keys = 128;  // fits head_dim of up to 128
  EXPECT_THROW(attention::wgmma_source.write(wide.request()), Error);
  attention::Planes planes;
  planes.head_dim = planes.head_dim_v = 72, planes.bias = TUFF_F32, planes.keys = 48;  // too many registers
  EXPECT_NO_THROW(check_defines(planes.request()));
  EXPECT_THROW(attention::planes_source.write(planes.request()), Error);
  planes.head_dim = planes.head_dim_v = 64;
  EXPECT_NO_THROW(attention::planes_source.write(planes.request()));
  attention::Decode decoded;
  decoded.type = TUFF_F16, decoded.head_dim = decoded.head_dim_v = 64, decoded.rows = 8, decoded.bias = TUFF_F32;
  EXPECT_NO_THROW(check_defines(decoded.request()));
  EXPECT_THROW(attention::decode_source.write(decoded.request()), Error);  // a bias needs all rows of a warp
  decoded.rows = 16;
  EXPECT_NO_THROW(attention::decode_source.write(decoded.request()));
  decoded.head_dim = decoded.head_dim_v = 256;  // and leaves too few registers for these
  EXPECT_NO_THROW(check_defines(decoded.request()));
  EXPECT_THROW(attention::decode_source.write(decoded.request()), Error);
  decoded.bias = 0;
  EXPECT_NO_THROW(attention::decode_source.write(decoded.request()));
  attention_backward::Wgmma nothing;
  nothing.type = TUFF_F16, nothing.head_dim = nothing.head_dim_v = 64;
  nothing.keys_side = true;  // neither dk nor dv
  EXPECT_NO_THROW(check_defines(nothing.request()));
  EXPECT_THROW(attention_backward::wgmma_source.write(nothing.request()), Error);
  nothing.keys_side = false, nothing.first = nothing.second = true;  // dv by rows
  EXPECT_THROW(attention_backward::wgmma_source.write(nothing.request()), Error);
  nothing.keys_side = true, nothing.head_dim = 112, nothing.head_dim_v = 128;  // too many registers
  EXPECT_NO_THROW(check_defines(nothing.request()));
  EXPECT_THROW(attention_backward::wgmma_source.write(nothing.request()), Error);
  nothing.head_dim = 104;
  EXPECT_NO_THROW(attention_backward::wgmma_source.write(nothing.request()));
  nothing.second = false, nothing.head_dim = 136;
  EXPECT_THROW(check_defines(nothing.request()), Error);
}

}  // namespace
}  // namespace tuff
