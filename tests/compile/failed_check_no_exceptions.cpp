// Without exceptions a failed check prints its message and aborts, with nothing written.
#include <phiattn/attention/attention.hpp>
#include <phiattn/kernels/exponential.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace phiattn;

namespace {

float g_out[4 * 2];
constexpr char kMessageFile[] = "failed_check_no_exceptions.txt";

/// The test goes on here. It passes if out still is what it was and the message is the one that is due.
extern "C" void at_abort(int) {
  for (const float x : g_out) {
    if (x != -77) std::_Exit(2);
  }
  char message[200] = {};
  std::FILE* file = std::fopen(kMessageFile, "r");
  const bool read = file != nullptr && std::fgets(message, sizeof(message), file) != nullptr;
  std::remove(kMessageFile);
  const bool due =
      read && std::strstr(message, "phiattn: rows of v: got 6, expected 5 (rows of k)") != nullptr;
  std::_Exit(due ? 0 : 3);
}

}  // namespace

int main() {
  std::signal(SIGABRT, at_abort);
  if (std::freopen(kMessageFile, "w", stderr) == nullptr) return 4;
  std::setvbuf(stderr, nullptr, _IONBF, 0);
  for (float& x : g_out) x = -77;

  const Matrix<float> q = Matrix<float>::Random(4, 3), k = Matrix<float>::Random(5, 3),
                      v = Matrix<float>::Random(6, 2);
  attention(ExponentialKernel<float>(), q, k, v, Eigen::Map<Matrix<float>>(g_out, 4, 2));
  return 1;  // it came back
}
