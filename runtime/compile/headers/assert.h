// <assert.h>: as <cassert>, and like it may be included again after NDEBUG has changed.
#include <cassert>
