// SPDX-License-Identifier: GPL-2.0
/*
 * Interrupt lines without a device, for the tests in rust/irqmod/kernel: what
 * comes while a line is disabled is kept, as of an MSI vector.
 */

#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irq_work.h>
#include <linux/irqdesc.h>
#include "sim.h"

struct irqmod_sim_shot {
	struct irq_work work;
	unsigned int irq;
};

int irqmod_sim_create(void)
{
	int irq = irq_alloc_desc(NUMA_NO_NODE);

	if (irq < 0)
		return irq;
	irq_set_chip_and_handler(irq, &dummy_irq_chip, handle_edge_irq);
	irq_clear_status_flags(irq, IRQ_NOREQUEST);
	return irq;
}

void irqmod_sim_remove(unsigned int irq)
{
	irq_set_chip_and_handler(irq, NULL, NULL);
	irq_free_desc(irq);
}

static void irqmod_sim_fire(struct irq_work *work)
{
	generic_handle_irq(container_of(work, struct irqmod_sim_shot, work)->irq);
}

void irqmod_sim_raise(unsigned int irq)
{
	struct irqmod_sim_shot shot = {
		.work = IRQ_WORK_INIT_HARD(irqmod_sim_fire),
		.irq = irq,
	};

	irq_work_queue(&shot.work);
	irq_work_sync(&shot.work);
}

bool irqmod_sim_is_requested(unsigned int irq)
{
	return irq_has_action(irq);
}

unsigned int irqmod_sim_depth(unsigned int irq)
{
	return irq_to_desc(irq)->depth;
}
