// Figure 6: contours of the Gaussian, the exponential and the cosine kernel around one point of the plane.
#include <phiattn/core/matrix.hpp>

#include "support/lab.hpp"

namespace figures {

void kernels_in_the_plane(const Options& options, Claims& claims) {
  constexpr double kRange = 3;
  constexpr Index kSteps = 61;
  const Vector<double> x0 = (Vector<double>(2) << 1.5, 1).finished();
  Csv csv(options, "kernels_in_the_plane.csv", "x,y,gaussian,exponential,cosine");
  for (Index i = 0; i < kSteps; ++i) {
    for (Index j = 0; j < kSteps; ++j) {
      const Vector<double> x =
          (Vector<double>(2) << kRange * (2.0 * static_cast<double>(i) / (kSteps - 1) - 1),
           kRange * (2.0 * static_cast<double>(j) / (kSteps - 1) - 1))
              .finished();
      const double norms = x.norm() * x0.norm();
      csv.row(x(0), x(1), std::exp(-(x - x0).squaredNorm() / 2), std::exp(x.dot(x0)),
              norms > 0 ? x.dot(x0) / norms : 0);
    }
    csv.row();
  }

  // Of normal pairs (x0, x1), and for each kernel: how often is x1 at least as similar to x0 as x0 itself?
  std::string shares;
  for (const Index d : {2, 16, 64}) {
    constexpr Index kPairs = 100000;
    const Matrix<double> a = gaussian(kPairs, d, 1, 0, 61), b = gaussian(kPairs, d, 1, 0, 62);
    double dot = 0, distance = 0;
    for (Index i = 0; i < kPairs; ++i) {
      dot += a.row(i).dot(b.row(i)) > a.row(i).squaredNorm();
      distance += (a.row(i) - b.row(i)).squaredNorm() <= 0;
    }
    shares += text("%.1f %% and %.0f %% in d = %td; ", 100 * dot / kPairs, 100 * distance / kPairs, d);
  }
  claims.add(
      {"similarity",
       "exp(x₀·x₁) exceeds exp(x₀·x₀) on a half-plane; exp(−|x₀−x₁|²/2) has its one maximum at x₁ = x₀",
       "holds; the half-space is rarely met in many dimensions",
       "normal x₁ beats x₀ itself: dot product and distance: " + shares.substr(0, shares.size() - 2), "6"});
  claims.add({"similarity", "the cosine behaves as a distance", "holds on the sphere only",
              "|x₀−x₁|² = 2 − 2 cos for unit vectors; in the plane its maximum is a ray, not a point", "6"});
}

}  // namespace figures
