// expect: constraint
#include <phiattn/phiattn.hpp>

int main() { phiattn::ExponentialKernel<long double> softmax; }
