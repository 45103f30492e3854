// The language model of examples/data/model, as it lies in its files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "../support/files.hpp"
#include "../support/json.hpp"
#include "tensor_file.hpp"
#include "tokens.hpp"

namespace examples {

/// The sides of a causal transformer with pre-norm blocks, rotary positions and tied embeddings.
struct Architecture {
  Index layers, heads, d, width, context, vocabulary;
  double rotary_base;
};

/// y = x W' + b for rows x, W (outputs, inputs).
struct Affine {
  pa::Matrix<float> weight;
  pa::RowVector<float> bias;
};

/// y = (x - mean x) / sqrt(var x + 1e-5) * weight + bias for each row x   (Ba, Kiros & Hinton 2016)
struct LayerNorm {
  pa::RowVector<float> weight, bias;
};

/// x <- x + projection(attention(qkv(n1(x)))),  x <- x + down(gelu(up(n2(x))))
struct Block {
  LayerNorm n1, n2;
  pa::Matrix<float> qkv;         // (3 width, width): q of all heads, then k, then v
  pa::Matrix<float> projection;  // (width, width)
  Affine up, down;
};

struct LanguageModel {
  Architecture sides;
  pa::Matrix<float> embedding;  // (vocabulary, width), the output layer too
  std::vector<Block> blocks;
  LayerNorm last;
};

namespace detail {

inline Architecture read_architecture(const std::filesystem::path& path) {
  constexpr Index kMost = 1 << 24;  // products of two stay numbers
  const std::string text = files::read_all(path);
  const auto member = [&](const std::string& key) {
    return json_whole_number<Index>(text, key, path.string(), 1, kMost);
  };
  const Architecture sides{member("layers"),           member("heads"),   member("d"),
                           member("d_model"),          member("context"), member("vocabulary"),
                           double(member("rope_base"))};
  if (sides.heads * sides.d != sides.width || sides.d % 2 != 0) {
    files::fail(path, "d_model: got " + std::to_string(sides.width) + ", expected heads times an even d, " +
                          std::to_string(sides.heads) + " times " + std::to_string(sides.d));
  }
  return sides;
}

}  // namespace detail

/// @throws std::runtime_error  if a file is missing, malformed or of another shape than config.json says
inline LanguageModel read_language_model(const std::filesystem::path& folder) {
  LanguageModel model{detail::read_architecture(folder / "config.json"), {}, {}, {}};
  const Index width = model.sides.width;
  const auto file = [&](const std::string& name) { return folder / (name + ".npy"); };
  const auto norm = [&](const std::string& name) -> LayerNorm {
    return {read_vector(file(name + ".weight"), width), read_vector(file(name + ".bias"), width)};
  };
  const auto affine = [&](const std::string& name, Index outputs, Index inputs) -> Affine {
    return {read_matrix(file(name + ".weight"), outputs, inputs), read_vector(file(name + ".bias"), outputs)};
  };
  model.embedding = read_matrix(file("emb.weight"), model.sides.vocabulary, width);
  for (Index layer = 0; layer < model.sides.layers; ++layer) {
    const std::string name = "blocks." + std::to_string(layer) + '.';
    model.blocks.push_back({norm(name + "n1"), norm(name + "n2"),
                            read_matrix(file(name + "qkv.weight"), 3 * width, width),
                            read_matrix(file(name + "proj.weight"), width, width),
                            affine(name + "up", 4 * width, width), affine(name + "down", width, 4 * width)});
  }
  model.last = norm("nf");
  return model;
}

/// Windows of text, context + 1 tokens each: every token but the last is followed by what it should predict.
/// @throws std::runtime_error  as read_numbers(), or if a token is not in the vocabulary
inline std::vector<Tokens> read_windows(const std::filesystem::path& path, const Architecture& sides,
                                        Index count) {
  const Index length = sides.context + 1;
  const auto all = read_numbers<std::int32_t>(path, "<i4", {count, length});
  for (const int token : all) {
    if (token < 0 || token >= sides.vocabulary) {
      files::fail(path, "token " + std::to_string(token) + " is not in the vocabulary");
    }
  }
  std::vector<Tokens> windows;
  for (Index i = 0; i < count; ++i) {
    const auto begin = all.begin() + i * length;
    windows.emplace_back(begin, begin + length);
  }
  return windows;
}

}  // namespace examples
