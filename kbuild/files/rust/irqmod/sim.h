/* SPDX-License-Identifier: GPL-2.0 */
/* Interrupt lines without a device, for tests. Used by rust/irqmod/kernel. */
#ifndef _RUST_IRQMOD_SIM_H
#define _RUST_IRQMOD_SIM_H

#include <linux/types.h>

/* Makes a line and returns its number, or an error. Edge triggered. Task. */
int irqmod_sim_create(void);

/* Gives the line back, which nobody has requested. Task. */
void irqmod_sim_remove(unsigned int irq);

/* Sends one interrupt, on this CPU, and returns after its handler. Task. */
void irqmod_sim_raise(unsigned int irq);

/* Whether the line is requested, and how often disabled. Any context. */
bool irqmod_sim_is_requested(unsigned int irq);
unsigned int irqmod_sim_depth(unsigned int irq);

#endif
