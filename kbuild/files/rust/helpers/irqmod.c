// SPDX-License-Identifier: GPL-2.0

#if IS_ENABLED(CONFIG_RUST_IRQMOD)
#include <linux/moduleparam.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

/* The bits are those of Glance in rust/irqmod/observation.rs. */
__rust_helper u32 rust_helper_irqmod_glance(void)
{
	return (in_hardirq() ? BIT(0) : 0) |
	       (tif_test_bit(TIF_NEED_RESCHED) ? BIT(1) : 0) |
	       (is_idle_task(current) ? BIT(2) : 0) |
	       (tif_test_bit(TIF_NEED_RESCHED_LAZY) ? BIT(4) : 0);
}

/* Another task has another address, the same task one switch more. */
__rust_helper u64 rust_helper_irqmod_switches(void)
{
	return (uintptr_t)current + current->nvcsw + current->nivcsw;
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
