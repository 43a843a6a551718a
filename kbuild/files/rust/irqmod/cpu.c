// SPDX-License-Identifier: GPL-2.0
/*
 * What irqmod has of each CPU: storage, and a thread that comes and goes with
 * the CPU. What happens with them is in rust/irqmod/kernel.
 */
#define pr_fmt(fmt) "irqmod: " fmt

#include <linux/export.h>
#include <linux/init.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/smpboot.h>
#include <linux/workqueue.h>
#include <uapi/linux/sched/types.h>
#include "cpu.h"

DEFINE_PER_CPU(struct irqmod_cpu, irqmod_cpu);
EXPORT_PER_CPU_SYMBOL_GPL(irqmod_cpu);

/*
 * Before ordinary tasks, whose slices would decide otherwise what completions
 * get. It does not starve them: it sleeps when the ledger says so.
 */
static void irqmod_thread_setup(unsigned int cpu)
{
	sched_set_fifo_low(current);
	irqmod_cpu_online(cpu);
}

/* When the thread of another CPU could not be made. An offline CPU was parked. */
static void irqmod_thread_cleanup(unsigned int cpu, bool online)
{
	if (online)
		irqmod_cpu_offline(cpu);
}

static struct smp_hotplug_thread irqmod_threads = {
	.store = &irqmod_cpu.thread,
	.thread_should_run = irqmod_cpu_should_serve,
	.thread_fn = irqmod_cpu_serve,
	.setup = irqmod_thread_setup,
	.cleanup = irqmod_thread_cleanup,
	.park = irqmod_cpu_offline,
	.unpark = irqmod_cpu_online,
	.thread_comm = "irqmod/%u",
};

static atomic_t irqmod_wanted = ATOMIC_INIT(0);

static void irqmod_register_threads(struct work_struct *work)
{
	int err = smpboot_register_percpu_thread(&irqmod_threads);

	if (err) {
		pr_err("no completion threads, softirqs stand in: %d\n", err);
		atomic_set(&irqmod_wanted, 0);
	}
}

static DECLARE_WORK(irqmod_register_work, irqmod_register_threads);

/* Callers may hold any lock, which registering must not nest in. */
void irqmod_start_threads(void)
{
	if (!atomic_read(&irqmod_wanted) && !atomic_xchg(&irqmod_wanted, 1))
		schedule_work(&irqmod_register_work);
}
EXPORT_SYMBOL_GPL(irqmod_start_threads);

void irqmod_current_set_fifo(u32 priority)
{
	struct sched_param param = { .sched_priority = priority };

	WARN_ON_ONCE(sched_setscheduler_nocheck(current, SCHED_FIFO, &param));
}
EXPORT_SYMBOL_GPL(irqmod_current_set_fifo);

static int __init irqmod_cpus_init(void)
{
	unsigned int number;

	for_each_possible_cpu(number) {
		struct irqmod_cpu *cpu = per_cpu_ptr(&irqmod_cpu, number);

		cpu->number = number;
		raw_spin_lock_init(&cpu->lock);
		INIT_LIST_HEAD(&cpu->served);
		INIT_LIST_HEAD(&cpu->held);
		hrtimer_setup(&cpu->hold_timer, irqmod_cpu_on_hold_timer,
			      CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
		irqmod_cpu_init(cpu);
	}
	return 0;
}
early_initcall(irqmod_cpus_init);
