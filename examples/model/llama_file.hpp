// Llama-style models, as they lie in the files of llama2.c: version 0, which has no version in it, and 1.
#pragma once

#include <phiattn/core/matrix.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../support/files.hpp"

namespace examples {

namespace pa = phiattn;
using pa::Index;

static_assert(std::endian::native == std::endian::little, "llama_file: written for little-endian machines");

/// The sides of a decoder whose heads of queries share heads of keys.
struct LlamaShape {
  Index dim, hidden, layers, heads, kv_heads, vocabulary, context;

  Index d() const { return dim / heads; }
  Index kv_dim() const { return d() * kv_heads; }
  Index parameters(bool shared_classifier) const {
    const Index of_layer = 2 * dim + 2 * dim * dim + 2 * kv_dim() * dim + 3 * hidden * dim;
    return (shared_classifier ? 1 : 2) * vocabulary * dim + layers * of_layer + dim;
  }
};

/// x <- x + projection(attention(qkv(norm(x)))),  x <- x + down(silu(gate(norm(x))) up(norm(x)))
struct LlamaLayer {
  pa::RowVector<float> attention_norm, transform_norm;
  pa::Matrix<float> qkv;         // (dim + 2 kv_dim, dim): q of all heads, then k, then v
  pa::Matrix<float> projection;  // (dim, dim)
  pa::Matrix<float> gate_up;     // (2 hidden, dim)
  pa::Matrix<float> down;        // (dim, hidden)
};

struct LlamaModel {
  LlamaModel(const LlamaShape& s, bool shared_classifier)
      : sides(s),
        embedding(s.vocabulary, s.dim),
        last_norm(s.dim),
        own_classifier(shared_classifier ? 0 : s.vocabulary, s.dim) {
    for (Index layer = 0; layer < s.layers; ++layer) {
      layers.push_back({pa::RowVector<float>(s.dim), pa::RowVector<float>(s.dim),
                        pa::Matrix<float>(s.dim + 2 * s.kv_dim(), s.dim), pa::Matrix<float>(s.dim, s.dim),
                        pa::Matrix<float>(2 * s.hidden, s.dim), pa::Matrix<float>(s.dim, s.hidden)});
    }
  }

  bool shares_classifier() const { return own_classifier.rows() == 0; }
  const pa::Matrix<float>& classifier() const { return shares_classifier() ? embedding : own_classifier; }

  LlamaShape sides;
  pa::Matrix<float> embedding;  // (vocabulary, dim)
  std::vector<LlamaLayer> layers;
  pa::RowVector<float> last_norm;
  pa::Matrix<float> own_classifier;  // (vocabulary, dim); empty: the embedding
};

/// What is wrong with a shape, or nothing. Sides are bounded so that their products stay numbers.
inline std::string complaint_about(const LlamaShape& s) {
  const std::array<std::pair<const char*, std::pair<Index, Index>>, 7> sides{
      {{"dim", {s.dim, 1 << 16}},
       {"hidden_dim", {s.hidden, 1 << 18}},
       {"n_layers", {s.layers, 1 << 12}},
       {"n_heads", {s.heads, s.dim}},
       {"n_kv_heads", {s.kv_heads, s.heads}},
       {"vocab_size", {s.vocabulary, 1 << 22}},
       {"seq_len", {s.context, 1 << 24}}}};
  for (const auto& [name, side] : sides) {
    if (side.first >= 1 && side.first <= side.second) continue;
    return std::string(name) + ": got " + std::to_string(side.first) + ", expected 1 to " +
           std::to_string(side.second);
  }
  if (s.dim % (2 * s.heads) != 0) {
    return "n_heads: got " + std::to_string(s.heads) + ", expected heads of an even size, of dim " +
           std::to_string(s.dim);
  }
  if (s.heads % s.kv_heads != 0) {
    return "n_kv_heads: got " + std::to_string(s.kv_heads) + ", expected a divisor of n_heads, " +
           std::to_string(s.heads);
  }
  return {};
}

namespace detail {

struct LlamaHeader {
  int version;
  LlamaShape sides;
  bool shared_classifier;
};

inline LlamaHeader read_llama_header(files::Reader& file) {
  const auto next = [&file](std::uintmax_t bytes) {
    if (file.left() < bytes) files::fail(file.path(), "ends within the header");
    return file.read(bytes);
  };
  const auto integer = [&next] {
    std::int32_t x;
    std::memcpy(&x, next(sizeof x).data(), sizeof x);
    return Index{x};
  };
  constexpr Index kMagic = 0x616b3432, kVersion1Bytes = 256;
  const Index first = integer();
  LlamaHeader header{0, {}, false};
  if (first == kMagic) {
    const Index version = integer();
    if (version != 1) {
      files::fail(file.path(), "version: got " + std::to_string(version) + ", expected 0 or 1, of float32");
    }
    header.version = 1;
  }
  LlamaShape& s = header.sides;
  s.dim = header.version == 0 ? first : integer();
  for (Index* side : {&s.hidden, &s.layers, &s.heads, &s.kv_heads, &s.vocabulary, &s.context})
    *side = integer();
  if (header.version == 0) {
    header.shared_classifier = s.vocabulary > 0;
    if (s.vocabulary < 0) s.vocabulary = -s.vocabulary;
  } else {
    const std::string rest = next(kVersion1Bytes - 9 * sizeof(std::int32_t));
    header.shared_classifier = rest[0] != 0;
  }
  if (const std::string wrong = complaint_about(s); !wrong.empty()) files::fail(file.path(), wrong);
  return header;
}

/// Calls take(matrix or rows of it) for all weights in the order of the file, and skip(numbers) for what is not needed.
void in_file_order(LlamaModel& model, int version, const auto& take, const auto& skip) {
  const Index dim = model.sides.dim, kv_dim = model.sides.kv_dim(), hidden = model.sides.hidden;
  const auto of_layers = [&](const auto& part) {
    for (LlamaLayer& layer : model.layers) take(part(layer));
  };
  const auto attention_norms = [&] { of_layers([](auto& l) { return l.attention_norm.topRows(1); }); };
  const auto transform_norms = [&] { of_layers([](auto& l) { return l.transform_norm.topRows(1); }); };
  if (version == 0) take(model.embedding.topRows(model.sides.vocabulary));
  attention_norms();
  if (version == 1) {
    transform_norms();
    take(model.last_norm.topRows(1));
    take(model.embedding.topRows(model.sides.vocabulary));
  }
  of_layers([=](auto& l) { return l.qkv.topRows(dim); });
  of_layers([=](auto& l) { return l.qkv.middleRows(dim, kv_dim); });
  of_layers([=](auto& l) { return l.qkv.bottomRows(kv_dim); });
  of_layers([=](auto& l) { return l.projection.topRows(dim); });
  if (version == 0) transform_norms();
  of_layers([=](auto& l) { return l.gate_up.topRows(hidden); });
  of_layers([=](auto& l) { return l.down.topRows(dim); });
  of_layers([=](auto& l) { return l.gate_up.bottomRows(hidden); });
  if (version == 0) {
    take(model.last_norm.topRows(1));
    skip(model.sides.context * model.sides.d());  // cosines and sines of the rotary positions
  }
  take(model.own_classifier.topRows(model.own_classifier.rows()));
}

}  // namespace detail

/// @throws std::runtime_error  naming the file, if it is missing, malformed, or of another size than its header says
inline LlamaModel read_llama(const std::filesystem::path& path) {
  files::Reader file(path);
  const auto [version, sides, shared_classifier] = detail::read_llama_header(file);
  const Index due = static_cast<Index>(sizeof(float)) *
                    (sides.parameters(shared_classifier) + (version == 0 ? sides.context * sides.d() : 0));
  if (static_cast<Index>(file.left()) != due) {
    files::fail(path, "got " + std::to_string(file.left()) + " bytes behind the header, expected " +
                          std::to_string(due) + " of its sides");
  }
  const auto next = [&file](Index numbers) {
    return file.read(static_cast<std::uintmax_t>(numbers) * sizeof(float));
  };
  LlamaModel model(sides, shared_classifier);
  detail::in_file_order(
      model, version,
      [&](auto rows) {
        const std::string bytes = next(rows.size());
        if (!bytes.empty()) std::memcpy(rows.data(), bytes.data(), bytes.size());
      },
      next);
  return model;
}

/// Normal weights of variance 1 / inputs, and norms of 1: for timing.
inline LlamaModel random_llama(const LlamaShape& sides, std::uint64_t seed) {
  LlamaModel model(sides, true);
  std::mt19937_64 bits(seed);
  detail::in_file_order(
      model, 1,
      [&](auto rows) {
        std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(rows.cols())));
        std::generate_n(rows.data(), rows.size(), [&] { return normal(bits); });
      },
      [](Index) {});
  for (LlamaLayer& layer : model.layers) {
    layer.attention_norm.setOnes();
    layer.transform_norm.setOnes();
  }
  model.last_norm.setOnes();
  return model;
}

}  // namespace examples
