// <stdio.h>: as <cstdio>.
#pragma once

#include <cstdio>
