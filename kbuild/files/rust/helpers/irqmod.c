// SPDX-License-Identifier: GPL-2.0

#if IS_ENABLED(CONFIG_RUST_IRQMOD)
#include <linux/bottom_half.h>
#include <linux/interrupt.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

__rust_helper bool rust_helper_irqmod_need_resched(void)
{
	return need_resched();
}

__rust_helper bool rust_helper_irqmod_in_hardirq(void)
{
	return in_hardirq();
}

__rust_helper void rust_helper_spin_lock_bh(spinlock_t *lock)
{
	spin_lock_bh(lock);
}

__rust_helper void rust_helper_spin_unlock_bh(spinlock_t *lock)
{
	spin_unlock_bh(lock);
}

__rust_helper void rust_helper_local_bh_disable(void)
{
	local_bh_disable();
}

__rust_helper void rust_helper_local_bh_enable(void)
{
	local_bh_enable();
}

__rust_helper int rust_helper_irqmod_request_threaded_irq(unsigned int irq,
		irq_handler_t handler, irq_handler_t thread_fn,
		unsigned long flags, const char *name, void *dev)
{
	return request_threaded_irq(irq, handler, thread_fn, flags, name, dev);
}
#endif
