// SPDX-License-Identifier: GPL-2.0

#if IS_ENABLED(CONFIG_RUST_IRQMOD)
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/kthread.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/stat.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include "../irqmod/cpu.h"

DECLARE_PER_CPU(struct irqmod_cpu, irqmod_cpu);

/* The bits are those of Glance in rust/irqmod/observation.rs. */
__rust_helper u32 rust_helper_irqmod_glance(void)
{
	unsigned long flags = READ_ONCE(current_thread_info()->flags);

	return this_cpu_read(irqmod_cpu.glance) |
	       (in_hardirq() ? BIT(0) : 0) |
	       (flags & _TIF_NEED_RESCHED ? BIT(1) : 0) |
	       (is_idle_task(current) && !softirq_count() ? BIT(2) : 0) |
	       (flags & _TIF_NEED_RESCHED_LAZY ? BIT(4) : 0);
}

/* Glance::is_free() */
__rust_helper bool rust_helper_irqmod_is_free(void)
{
	if (!is_idle_task(current) || softirq_count() ||
	    this_cpu_read(irqmod_cpu.glance))
		return false;
	return !(READ_ONCE(current_thread_info()->flags) &
		 (_TIF_NEED_RESCHED | _TIF_NEED_RESCHED_LAZY));
}

/* Another task has another address, the same task one switch more. */
__rust_helper u64 rust_helper_irqmod_switches(void)
{
	return (uintptr_t)current + current->nvcsw + current->nivcsw;
}

/*
 * 0 if the current task is not SCHED_FIFO. bindgen misplaces fields of
 * task_struct behind an empty aligned struct.
 */
__rust_helper u32 rust_helper_irqmod_current_fifo_priority(void)
{
	return current->policy == SCHED_FIFO ? current->rt_priority : 0;
}

/*
 * Lets the current thread run on all CPUs that the line's interrupts may be
 * sent to, or only where they are sent. False if it has to be tried again.
 *
 * The thread may be needed to free memory: it must not wait for any. It stays
 * where it is while none of the CPUs is online, as the core would have it.
 */
__rust_helper bool rust_helper_irqmod_place_current(unsigned int irq, bool spread)
{
	struct irq_data *data = irq_get_irq_data(irq);
	const struct cpumask *allowed = irq_data_get_affinity_mask(data);
	cpumask_var_t mask;

	if (!spread)
		allowed = irq_data_get_effective_affinity_mask(data);
	if (cpumask_equal(current->cpus_ptr, allowed))
		return true;
	if (!alloc_cpumask_var(&mask, GFP_NOWAIT | __GFP_NOWARN))
		return false;
	/* An affinity may change at any time: decide on a copy. */
	cpumask_copy(mask, allowed);
	set_cpus_allowed_ptr(current, mask);
	free_cpumask_var(mask);
	return true;
}

/* Whether handlers run in threads that the core makes for them. */
__rust_helper bool rust_helper_irqmod_forces_threads(void)
{
	return force_irqthreads();
}

__rust_helper void rust_helper_irqmod_cond_resched(void)
{
	cond_resched_tasks_rcu_qs();
}

/* Between two pieces of a completion thread; false if it is to park. */
__rust_helper bool rust_helper_irqmod_go_on(void)
{
	cond_resched_tasks_rcu_qs();
	return !kthread_should_park();
}

__rust_helper void rust_helper_irqmod_param_lock(struct module *mod)
{
	kernel_param_lock(mod);
}

__rust_helper void rust_helper_irqmod_param_unlock(struct module *mod)
{
	kernel_param_unlock(mod);
}

__rust_helper u32 rust_helper_irq_get_trigger_type(unsigned int irq)
{
	return irq_get_trigger_type(irq);
}

__rust_helper void rust_helper_spin_lock_bh(spinlock_t *lock)
{
	spin_lock_bh(lock);
}

__rust_helper void rust_helper_spin_unlock_bh(spinlock_t *lock)
{
	spin_unlock_bh(lock);
}

__rust_helper struct irqmod_cpu *rust_helper_irqmod_cpu_of(unsigned int number)
{
	return per_cpu_ptr(&irqmod_cpu, number);
}

__rust_helper struct irqmod_cpu *rust_helper_irqmod_cpu_get(unsigned long *flags)
{
	unsigned long saved;

	local_irq_save(saved);
	*flags = saved;
	return this_cpu_ptr(&irqmod_cpu);
}

__rust_helper void rust_helper_irqmod_cpu_put(unsigned long flags)
{
	local_irq_restore(flags);
}

/* Interrupts are off in func; -ENXIO for a CPU that is not online. */
__rust_helper int rust_helper_irqmod_call_on(unsigned int number, smp_call_func_t func, void *arg)
{
	return smp_call_function_single(number, func, arg, true);
}

__rust_helper unsigned long rust_helper_irqmod_cpu_lock(struct irqmod_cpu *cpu)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&cpu->lock, flags);
	return flags;
}

__rust_helper void rust_helper_irqmod_cpu_unlock(struct irqmod_cpu *cpu, unsigned long flags)
{
	raw_spin_unlock_irqrestore(&cpu->lock, flags);
}

__rust_helper void rust_helper_irqmod_list_add(struct list_head *new, struct list_head *head)
{
	list_add(new, head);
}

__rust_helper void rust_helper_irqmod_list_del_init(struct list_head *entry)
{
	list_del_init(entry);
}

__rust_helper bool rust_helper_irqmod_hrtimer_is_queued(struct hrtimer *timer)
{
	return hrtimer_is_queued(timer);
}

__rust_helper bool rust_helper_irqmod_cpu_is_contended(void)
{
	return !single_task_running();
}

/*
 * A completion thread sleeps, as if it had nothing to do. Somebody may wake it:
 * then it goes on sleeping while others want the CPU.
 */
__rust_helper void rust_helper_irqmod_rest(u64 nanos)
{
	ktime_t end = ktime_add_ns(ktime_get(), nanos);

	do {
		set_current_state(TASK_IDLE);
		if (!kthread_should_park())
			schedule_hrtimeout(&end, HRTIMER_MODE_ABS);
		__set_current_state(TASK_RUNNING);
	} while (!kthread_should_park() && !single_task_running() &&
		 ktime_before(ktime_get(), end));
}

/* Any CPU may run the work; requests are completed by it, so it must not wait for memory. */
__rust_helper struct workqueue_struct *rust_helper_irqmod_alloc_workqueue(const char *name)
{
	return alloc_workqueue("%s", WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 1, name);
}
#endif
