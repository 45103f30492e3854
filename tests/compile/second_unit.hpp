// Attention as it comes out of another translation unit.
#pragma once

#include <phiattn/core/matrix.hpp>

phiattn::Matrix<float> softmax_in_second_unit(const phiattn::Matrix<float>& x);
phiattn::Matrix<float> favor_in_second_unit(const phiattn::Matrix<float>& x);
