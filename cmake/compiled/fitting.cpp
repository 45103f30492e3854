#include <phiattn/fitting/balancing.hpp>
#include <phiattn/fitting/importance.hpp>
#include <phiattn/fitting/k_means.hpp>
#include <phiattn/reparametrisation/reparametrisation.hpp>
#include <phiattn/reparametrisation/scaled_side.hpp>

namespace phiattn::inline PHIATTN_ABI {

template class ReparametrisationOf<double>;
template class detail::ScaledSide<float>;
template class detail::ScaledSide<double>;
template Reparametrisation key_centring<double>(const Input<double>&);
template Reparametrisation centring<double>(const Input<double>&, const Input<double>&);
template Reparametrisation diagonal_balance<double>(const Input<double>&, const Input<double>&);
template Matrix<double> k_means<double>(const Input<double>&, Index, const KMeansOptions&);
template Projection<float> sample_importance_projection<float, double>(Index, const Input<double>&,
                                                                       const Input<double>&,
                                                                       const ImportanceOptions&);

}  // namespace phiattn::inline PHIATTN_ABI
