// What a sample says of a mean and a variance, and how well.
#pragma once

#include <cmath>
#include <vector>

/// Mean and variance of a sample, with their standard errors.
struct Moments {
  explicit Moments(const std::vector<double>& sample) {
    const auto n = static_cast<double>(sample.size());
    for (const double x : sample) mean += x / n;
    for (const double x : sample) variance += (x - mean) * (x - mean) / (n - 1);
    error = std::sqrt(variance / n);
    double fourth = 0;
    for (const double x : sample) fourth += std::pow(x - mean, 4) / n;
    variance_error = std::sqrt((fourth - variance * variance) / n);
  }
  double mean = 0;
  double variance = 0;
  double error = 0;           // of the mean
  double variance_error = 0;  // of the variance
};
