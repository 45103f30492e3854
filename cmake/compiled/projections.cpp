#include <phiattn/projection/favor_plusplus.hpp>
#include <phiattn/projection/projection.hpp>

namespace phiattn::inline PHIATTN_ABI {

template class detail::HadamardRows<float>;
template class detail::HadamardRows<double>;
template class Projection<float>;
template class Projection<double>;
template Projection<float> sample_projection<float>(Index, Index, const ProjectionOptions&);
template Projection<double> sample_projection<double>(Index, Index, const ProjectionOptions&);
template Projection<float> favor_plusplus<float>(const Projection<float>&, double);
template Projection<double> favor_plusplus<double>(const Projection<double>&, double);

}  // namespace phiattn::inline PHIATTN_ABI
