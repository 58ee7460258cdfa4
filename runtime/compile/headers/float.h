// <float.h>: as <cfloat>.
#pragma once

#include <cfloat>
