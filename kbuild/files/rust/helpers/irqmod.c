// SPDX-License-Identifier: GPL-2.0

#if IS_ENABLED(CONFIG_RUST_IRQMOD)
#include <linux/moduleparam.h>
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

/* bindgen misplaces fields of task_struct behind an empty aligned struct. */
__rust_helper bool rust_helper_irqmod_current_is_fifo(void)
{
	return current->policy == SCHED_FIFO;
}

__rust_helper void rust_helper_irqmod_cond_resched(void)
{
	cond_resched();
}

__rust_helper void rust_helper_irqmod_param_lock(struct module *mod)
{
	kernel_param_lock(mod);
}

__rust_helper void rust_helper_irqmod_param_unlock(struct module *mod)
{
	kernel_param_unlock(mod);
}

__rust_helper void rust_helper_spin_lock_bh(spinlock_t *lock)
{
	spin_lock_bh(lock);
}

__rust_helper void rust_helper_spin_unlock_bh(spinlock_t *lock)
{
	spin_unlock_bh(lock);
}
#endif
