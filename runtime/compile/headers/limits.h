// <limits.h>: as <climits>.
#pragma once

#include <climits>
