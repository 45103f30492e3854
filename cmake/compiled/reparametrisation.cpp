#include <phiattn/reparametrisation/reparametrisation.hpp>
#include <phiattn/reparametrisation/scaled_side.hpp>

namespace phiattn::inline PHIATTN_ABI {

template class ReparametrisationOf<double>;
template class detail::ScaledSide<float>;
template class detail::ScaledSide<double>;

}  // namespace phiattn::inline PHIATTN_ABI
