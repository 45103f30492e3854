// Small models in the files of llama2.c, written as its format has them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace support {

/// Weights of one name, of one layer after the other.
struct LlamaWeights {
  std::int32_t dim, hidden, layers, heads, kv_heads, vocabulary, context;
  bool shared;
  std::vector<float> embedding, attention_norm, wq, wk, wv, wo, ffn_norm, w1, w2, w3, last_norm, classifier;
};

inline LlamaWeights llama_weights(std::int32_t heads, std::int32_t kv_heads, bool shared,
                                  std::int32_t vocabulary = 40) {
  LlamaWeights w{24, 20, 2,  heads, kv_heads, vocabulary, 16, shared, {}, {},
                 {}, {}, {}, {},    {},       {},         {}, {},     {}, {}};
  std::mt19937 bits(5);
  const auto fill = [&](std::vector<float>& weights, std::int32_t rows, std::int32_t cols, float mean) {
    std::normal_distribution<float> normal(mean, 1 / std::sqrt(static_cast<float>(cols)));
    weights.resize(static_cast<std::size_t>(rows * cols));
    for (float& x : weights) x = normal(bits);
  };
  const std::int32_t kv_dim = w.dim / w.heads * w.kv_heads;
  fill(w.embedding, w.vocabulary, w.dim, 0);
  fill(w.attention_norm, w.layers, w.dim, 1);
  fill(w.wq, w.layers * w.dim, w.dim, 0);
  fill(w.wk, w.layers * kv_dim, w.dim, 0);
  fill(w.wv, w.layers * kv_dim, w.dim, 0);
  fill(w.wo, w.layers * w.dim, w.dim, 0);
  fill(w.ffn_norm, w.layers, w.dim, 1);
  fill(w.w1, w.layers * w.hidden, w.dim, 0);
  fill(w.w2, w.layers * w.dim, w.hidden, 0);
  fill(w.w3, w.layers * w.hidden, w.dim, 0);
  fill(w.last_norm, 1, w.dim, 1);
  fill(w.classifier, shared ? 0 : w.vocabulary, w.dim, 0);
  return w;
}

template <class T>
void append_number(std::string& bytes, T x) {
  char raw[sizeof x];
  std::memcpy(raw, &x, sizeof x);
  bytes.append(raw, sizeof x);
}

inline void append_numbers(std::string& bytes, const std::vector<std::vector<float>>& arrays) {
  for (const auto& array : arrays) {
    for (const float x : array) append_number(bytes, x);
  }
}

inline std::string version_0(const LlamaWeights& w) {
  std::string bytes;
  for (const std::int32_t x :
       {w.dim, w.hidden, w.layers, w.heads, w.kv_heads, w.shared ? w.vocabulary : -w.vocabulary, w.context}) {
    append_number(bytes, x);
  }
  const std::vector<float> rotary(static_cast<std::size_t>(w.context * (w.dim / w.heads) / 2), 0.5f);
  append_numbers(bytes, {w.embedding, w.attention_norm, w.wq, w.wk, w.wv, w.wo, w.ffn_norm, w.w1, w.w2, w.w3,
                         w.last_norm, rotary, rotary, w.classifier});
  return bytes;
}

inline std::string version_1(const LlamaWeights& w) {
  std::string bytes = "24ka";
  for (const std::int32_t x : {1, w.dim, w.hidden, w.layers, w.heads, w.kv_heads, w.vocabulary, w.context}) {
    append_number(bytes, x);
  }
  bytes += w.shared ? '\1' : '\0';
  bytes.resize(256);
  append_numbers(bytes, {w.attention_norm, w.ffn_norm, w.last_norm, w.embedding, w.wq, w.wk, w.wv, w.wo, w.w1,
                         w.w2, w.w3, w.classifier});
  return bytes;
}

}  // namespace support
