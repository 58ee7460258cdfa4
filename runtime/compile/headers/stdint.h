// <stdint.h>: as <cstdint>.
#pragma once

#include <cstdint>
