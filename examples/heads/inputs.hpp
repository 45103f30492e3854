// The heads to look at: queries, keys and values of the shipped heads or of the user's files.
#pragma once

#include <phiattn/core/matrix.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../support/files.hpp"
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
  std::vector<phiattn::Index> leading;  // (heads) or (batch, heads), as they came; empty: one, as (n, d)
};

namespace detail {

inline std::string shape_of(const npy::Array& x) { return npy::detail::shown(x.shape); }

inline void check_match(bool match, const std::string& what, const std::string& first, const npy::Array& a,
                        const std::string& second, const npy::Array& b) {
  if (match) return;
  throw std::runtime_error(what + " differ: " + first + " has shape " + shape_of(a) + ", " + second +
                           " has shape " + shape_of(b));
}

/// The maps run in float: every row must be shorter than `longest`, so that what they make of it is a number.
inline void check_rows(const npy::Array& x, const std::string& file, double longest) {
  for (std::size_t h = 0; h < x.heads.size(); ++h) {
    for (phiattn::Index i = 0; i < x.heads[h].rows(); ++i) {
      const auto row = x.heads[h].row(i);
      const double length = row.allFinite() ? row.stableNorm() : std::numeric_limits<double>::infinity();
      if (length < longest) continue;
      throw std::runtime_error(file + ": row " + std::to_string(i) +
                               (x.leading().empty() ? "" : " of head " + std::to_string(h)) +
                               (row.allFinite() ? ": got the norm " + format("%.3g", length)
                                                : std::string(": got a NaN or an infinity")) +
                               ", expected finite numbers of a norm less than " + format("%.3g", longest));
    }
  }
}

}  // namespace detail

/// q (n_q, d), k (n_k, d), v (n_k, dv), or each with heads or (batch, heads) in front. k and v may have fewer heads
/// than q, by a whole factor.
/// @throws std::runtime_error  naming the file, if one is malformed or does not fit the others
inline Heads read_heads(const std::string& q_file, const std::string& k_file, const std::string& v_file) {
  const npy::Array q = npy::read(q_file);
  const npy::Array k = npy::read(k_file);
  const npy::Array v = npy::read(v_file);
  const auto sides = [](const npy::Array& x) { return x.shape.size(); };
  detail::check_match(sides(q) == sides(k), "numbers of dimensions", q_file, q, k_file, k);
  detail::check_match(k.leading() == v.leading(), "heads of keys and values", k_file, k, v_file, v);
  const bool batches = sides(q) == 4;
  detail::check_match(!batches || q.shape[0] == k.shape[0], "batches", q_file, q, k_file, k);
  const auto heads_of = [&](const npy::Array& x) {
    return sides(x) == 2 ? phiattn::Index{1} : x.leading().back();
  };
  detail::check_match(heads_of(q) % heads_of(k) == 0,
                      "numbers of heads, of which that of queries should be a multiple,", q_file, q, k_file,
                      k);
  detail::check_match(q.shape.back() == k.shape.back(), "dimensions d of q and k", q_file, q, k_file, k);
  detail::check_match(k.heads[0].rows() == v.heads[0].rows(), "numbers of keys and values", k_file, k, v_file,
                      v);
  constexpr double kLargest = std::numeric_limits<float>::max();
  detail::check_rows(q, q_file, std::sqrt(kLargest));  // norms are squared
  detail::check_rows(k, k_file, std::sqrt(kLargest));
  detail::check_rows(v, v_file, kLargest);

  Heads result{{}, q.leading()};
  const std::string name = std::filesystem::path(q_file).filename().string();
  const std::size_t sharing = q.heads.size() / k.heads.size();  // neighbours, batch by batch
  for (std::size_t h = 0; h < q.heads.size(); ++h) {
    const auto in_batch = static_cast<std::size_t>(heads_of(q));
    result.heads.push_back({name + (batches ? " batch " + std::to_string(h / in_batch) : "") +
                                (sides(q) > 2 ? " head " + std::to_string(h % in_batch) : ""),
                            "", std::nullopt, q.heads[h], k.heads[h / sharing], v.heads[h / sharing]});
  }
  return result;
}

/// The heads in `folder` that its manifest.json lists and that are among `names`; all of them if that is
/// empty.
/// @throws std::runtime_error  if a file is missing or malformed, or a name is not known
inline Heads read_shipped_heads(const std::filesystem::path& folder, const std::vector<std::string>& names) {
  const std::filesystem::path manifest = folder / "manifest.json";
  std::istringstream file(files::read_all(manifest));
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
    head.source = json_member(text, "source", manifest.string());
    head.causal = json_member(text, "causal", manifest.string()) == "true";
  }
  if (found < names.size()) throw UsageError("--heads: there are only" + known + ", each to be named once");
  if (result.heads.empty()) files::fail(manifest, "lists no heads");
  return result;
}

}  // namespace examples
