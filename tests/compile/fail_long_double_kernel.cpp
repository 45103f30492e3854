// expect: constraint
#include <phiattn/kernels/exponential.hpp>

int main() { phiattn::ExponentialKernel<long double> softmax; }
