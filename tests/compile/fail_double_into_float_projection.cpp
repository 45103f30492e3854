// expect: a projection would narrow
#include <phiattn/feature_maps/positive_random.hpp>

using namespace phiattn;

int main() { PositiveRandomFeatures<float> map(Matrix<double>::Random(4, 3)); }
