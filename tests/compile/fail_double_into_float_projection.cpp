// expect: a projection would narrow
#include <phiattn/phiattn.hpp>

using namespace phiattn;

int main() { PositiveRandomFeatures<float> map(Matrix<double>::Random(4, 3)); }
