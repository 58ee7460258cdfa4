// <math.h>: as <cmath>.
#pragma once

#include <cmath>
