// <stdlib.h>: as <cstdlib>.
#pragma once

#include <cstdlib>
