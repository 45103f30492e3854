// The version, for the preprocessor and for the build, which reads it from here.
#pragma once

#define PHIATTN_VERSION_MAJOR 0
#define PHIATTN_VERSION_MINOR 2
#define PHIATTN_VERSION_PATCH 0
