#pragma once

// Moved to fitting/landmarks.hpp; deprecated, here for one more version.

#include <phiattn/fitting/landmarks.hpp>
