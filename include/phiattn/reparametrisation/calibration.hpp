#pragma once

// Moved to fitting/balancing.hpp; deprecated, here for one more version.

#include <phiattn/fitting/balancing.hpp>
