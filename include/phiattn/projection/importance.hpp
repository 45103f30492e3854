#pragma once

// Moved to fitting/importance.hpp; deprecated, here for one more version.

#include <phiattn/fitting/importance.hpp>
