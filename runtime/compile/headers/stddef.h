// <stddef.h>: as <cstddef>.
#pragma once

#include <cstddef>
