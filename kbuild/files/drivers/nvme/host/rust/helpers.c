// SPDX-License-Identifier: GPL-2.0

#include <linux/pci.h>
#include "nvme.h"
