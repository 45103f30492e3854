// The heads to look at: queries, keys and values of the shipped heads or of the user's files.
#pragma once

#include <phiattn/core/matrix.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../support/json.hpp"
#include "../support/npy.hpp"
#include "arguments.hpp"

namespace examples {

struct Head {
  std::string name;
  std::string source;          // where it comes from, if known
  std::optional<bool> causal;  // how its model uses it, if known
  phiattn::Matrix<double> q, k, v;
};

struct Heads {
  std::vector<Head> heads;
  bool stacked = false;  // they came as (heads, n, d)
};

namespace detail {

inline std::string shape_of(const npy::Array& x) { return npy::detail::shown(x.shape); }

inline void check_match(bool match, const std::string& what, const std::string& first, const npy::Array& a,
                        const std::string& second, const npy::Array& b) {
  if (match) return;
  throw std::runtime_error(what + " differ: " + first + " has shape " + shape_of(a) + ", " + second +
                           " has shape " + shape_of(b));
}

}  // namespace detail

/// q (n_q, d), k (n_k, d), v (n_k, dv), or each with the same number of heads in front.
/// @throws std::runtime_error  if a file is malformed or the shapes do not fit together
inline Heads read_heads(const std::string& q_file, const std::string& k_file, const std::string& v_file) {
  const npy::Array q = npy::read(q_file);
  const npy::Array k = npy::read(k_file);
  const npy::Array v = npy::read(v_file);
  const auto heads_of = [](const npy::Array& x) { return x.heads.size(); };
  const auto sides = [](const npy::Array& x) { return x.shape.size(); };
  detail::check_match(sides(q) == sides(k), "numbers of dimensions", q_file, q, k_file, k);
  detail::check_match(sides(k) == sides(v), "numbers of dimensions", k_file, k, v_file, v);
  detail::check_match(heads_of(q) == heads_of(k), "numbers of heads", q_file, q, k_file, k);
  detail::check_match(heads_of(k) == heads_of(v), "numbers of heads", k_file, k, v_file, v);
  detail::check_match(q.shape.back() == k.shape.back(), "dimensions d of q and k", q_file, q, k_file, k);
  detail::check_match(k.heads[0].rows() == v.heads[0].rows(), "numbers of keys and values", k_file, k, v_file,
                      v);
  Heads result;
  result.stacked = sides(q) == 3;
  const std::string name = std::filesystem::path(q_file).filename().string();
  for (std::size_t h = 0; h < heads_of(q); ++h) {
    result.heads.push_back({result.stacked ? name + " head " + std::to_string(h) : name, "", std::nullopt,
                            q.heads[h], k.heads[h], v.heads[h]});
  }
  return result;
}

/// The heads in `folder` that its manifest.json lists and that are among `names`; all of them if that is
/// empty.
/// @throws std::runtime_error  if a file is missing or malformed, or a name is not known
inline Heads read_shipped_heads(const std::filesystem::path& folder, const std::vector<std::string>& names) {
  std::ifstream file(folder / "manifest.json");
  if (!file) throw std::runtime_error((folder / "manifest.json").string() + ": cannot be read");
  Heads result;
  std::string known;
  std::size_t found = 0;
  std::string text;
  std::getline(file, text, '{');
  while (std::getline(file, text, '"') && std::getline(file, text, '"')) {  // "name": { ... },
    const std::string name = text;
    std::getline(file, text, '}');
    known += ' ' + name;
    const bool wanted = std::find(names.begin(), names.end(), name) != names.end();
    found += wanted;
    if (!wanted && !names.empty()) continue;
    const std::string stem = (folder / name).string();
    Heads one = read_heads(stem + "_q.npy", stem + "_k.npy", stem + "_v.npy");
    Head& head = result.heads.emplace_back(std::move(one.heads.front()));
    head.name = name;
    head.source = json_member(text, "source", "manifest.json");
    head.causal = json_member(text, "causal", "manifest.json") == "true";
  }
  if (found < names.size()) throw UsageError("--heads: there are only" + known + ", each to be named once");
  if (result.heads.empty())
    throw std::runtime_error((folder / "manifest.json").string() + ": lists no heads");
  return result;
}

}  // namespace examples
