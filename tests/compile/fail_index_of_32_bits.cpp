// expect: indices of 64 bits: leave EIGEN_DEFAULT_DENSE_INDEX_TYPE
#define EIGEN_DEFAULT_DENSE_INDEX_TYPE int
#include <phiattn/phiattn.hpp>

int main() {}
