/* SPDX-License-Identifier: GPL-2.0 */
/* What irqmod has of each CPU. Used by cpu.c and by rust/irqmod/kernel. */
#ifndef _RUST_IRQMOD_CPU_H
#define _RUST_IRQMOD_CPU_H

#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/spinlock.h>

struct task_struct;

struct irqmod_cpu {
	/* Bits of Glance; stored by this CPU with interrupts off */
	u32 glance;
	u32 number;
	/* policy::Cpu; accessed by this CPU with interrupts off */
	u64 policy[64];
	/* Protects ready and the lists; taken in hardirq */
	raw_spinlock_t lock;
	/* The thread serves and the hold timer may run */
	bool ready;
	/* Lines that the thread serves */
	struct list_head served;
	/* Lines that wait for the hold timer */
	struct list_head held;
	struct hrtimer hold_timer;
	struct task_struct *thread;
};

/*
 * Starts the threads of all CPUs, some time from now. Any context, often. If
 * there was no memory for them, the next call tries again.
 */
void irqmod_start_threads(void);

/* Gives the current task its SCHED_FIFO priority back. Task context. */
void irqmod_current_set_fifo(u32 priority);

/* In Rust: */
void irqmod_cpu_init(struct irqmod_cpu *cpu);
enum hrtimer_restart irqmod_cpu_on_hold_timer(struct hrtimer *timer);
int irqmod_cpu_should_serve(unsigned int cpu);
void irqmod_cpu_serve(unsigned int cpu);
void irqmod_cpu_online(unsigned int cpu);
void irqmod_cpu_offline(unsigned int cpu);

#endif
