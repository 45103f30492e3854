#include <phiattn/core/symmetric_function.hpp>
#include <phiattn/reparametrisation/reparametrisation.hpp>
#include <phiattn/reparametrisation/scaled_side.hpp>

namespace phiattn::inline PHIATTN_ABI {

template class ReparametrisationOf<double>;
template Matrix<double> detail::symmetric_function<double>(const Matrix<double>&,
                                                           const std::function<void(Vector<double>&)>&);
template class detail::ScaledSide<float>;
template class detail::ScaledSide<double>;

}  // namespace phiattn::inline PHIATTN_ABI
