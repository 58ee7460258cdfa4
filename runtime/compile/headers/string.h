// <string.h>: as <cstring>.
#pragma once

#include <cstring>
