// Catch2 2.13 or 3, whichever is there: one include, one set of names for the tests.
#pragma once

#include <string>

#if __has_include(<catch2/catch_all.hpp>)

#include <catch2/catch_all.hpp>

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

#else

#include <catch2/catch.hpp>

inline auto ContainsSubstring(const std::string& text) { return Catch::Contains(text); }

#endif
