/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What happens to the lines of irqmod. "irq" is the number of the line, "policy"
 * that of its policy in the order of the file "policy" in debugfs. The record of
 * the event itself has the CPU and the time.
 */
#undef TRACE_SYSTEM
#undef TRACE_INCLUDE_FILE
#undef TRACE_INCLUDE_PATH
#define TRACE_SYSTEM irqmod
#define TRACE_INCLUDE_FILE trace
#define TRACE_INCLUDE_PATH ../rust/irqmod

#if !defined(_RUST_IRQMOD_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _RUST_IRQMOD_TRACE_H

#include <linux/tracepoint.h>

/* In the order of for_each_policy in policy.rs */
#define irqmod_show_policy(policy)				\
	__print_symbolic(policy,				\
			 { 0, "hardirq" },			\
			 { 1, "resched" },			\
			 { 2, "threaded" },			\
			 { 3, "irqpoll" },			\
			 { 4, "overflow" },			\
			 { 5, "inflight" },			\
			 { 6, "timer" },			\
			 { 7, "workqueue" },			\
			 { 8, "rate" },				\
			 { 9, "flood" },			\
			 { 10, "fair" })

/* Deferral in verdict.rs */
#define irqmod_show_deferral(to)				\
	__print_symbolic(to,					\
			 { 0, "softirq" },			\
			 { 1, "thread" },			\
			 { 2, "work" },				\
			 { 3, "hold" },				\
			 { 4, "cpu" })

/* Context in watch.rs */
#define irqmod_show_context(context)				\
	__print_symbolic(context,				\
			 { 0, "hardirq" },			\
			 { 1, "forced" },			\
			 { 2, "softirq" },			\
			 { 3, "thread" },			\
			 { 4, "work" },				\
			 { 5, "cpu" })

/* How a line is disabled: Mask in policy.rs, or by a task that waits */
#define irqmod_show_mask(how)					\
	__print_symbolic(how,					\
			 { 0, "nosync" },			\
			 { 1, "nowait" },			\
			 { 2, "sync" })

/* The source is taken from its handler, which has drained "found" */
TRACE_EVENT(irqmod_defer,
	TP_PROTO(u32 irq, u32 policy, u32 to, u32 found),
	TP_ARGS(irq, policy, to, found),
	TP_STRUCT__entry(
		__field(u32, irq)
		__field(u32, policy)
		__field(u32, to)
		__field(u32, found)
	),
	TP_fast_assign(
		__entry->irq = irq;
		__entry->policy = policy;
		__entry->to = to;
		__entry->found = found;
	),
	TP_printk("irq=%u policy=%s to=%s found=%u", __entry->irq,
		  irqmod_show_policy(__entry->policy),
		  irqmod_show_deferral(__entry->to), __entry->found)
);

/* A deferred drain is over */
TRACE_EVENT(irqmod_poll,
	TP_PROTO(u32 irq, u32 policy, u32 context, u32 found),
	TP_ARGS(irq, policy, context, found),
	TP_STRUCT__entry(
		__field(u32, irq)
		__field(u32, policy)
		__field(u32, context)
		__field(u32, found)
	),
	TP_fast_assign(
		__entry->irq = irq;
		__entry->policy = policy;
		__entry->context = context;
		__entry->found = found;
	),
	TP_printk("irq=%u policy=%s context=%s found=%u", __entry->irq,
		  irqmod_show_policy(__entry->policy),
		  irqmod_show_context(__entry->context), __entry->found)
);

/* An interrupt found nothing; one after each hand-back is forgiven */
TRACE_EVENT(irqmod_empty,
	TP_PROTO(u32 irq, u32 policy, bool forgiven),
	TP_ARGS(irq, policy, forgiven),
	TP_STRUCT__entry(
		__field(u32, irq)
		__field(u32, policy)
		__field(bool, forgiven)
	),
	TP_fast_assign(
		__entry->irq = irq;
		__entry->policy = policy;
		__entry->forgiven = forgiven;
	),
	TP_printk("irq=%u policy=%s forgiven=%d", __entry->irq,
		  irqmod_show_policy(__entry->policy), __entry->forgiven)
);

DECLARE_EVENT_CLASS(irqmod_line,
	TP_PROTO(u32 irq, u32 policy),
	TP_ARGS(irq, policy),
	TP_STRUCT__entry(
		__field(u32, irq)
		__field(u32, policy)
	),
	TP_fast_assign(
		__entry->irq = irq;
		__entry->policy = policy;
	),
	TP_printk("irq=%u policy=%s", __entry->irq,
		  irqmod_show_policy(__entry->policy))
);

/* The source is given back to its handler; the line is unmasked next */
DEFINE_EVENT(irqmod_line, irqmod_rearm,
	TP_PROTO(u32 irq, u32 policy),
	TP_ARGS(irq, policy)
);

/* The driver asks for it, whether or not there is anything to do */
DEFINE_EVENT(irqmod_line, irqmod_pause,
	TP_PROTO(u32 irq, u32 policy),
	TP_ARGS(irq, policy)
);

DEFINE_EVENT(irqmod_line, irqmod_resume,
	TP_PROTO(u32 irq, u32 policy),
	TP_ARGS(irq, policy)
);

DEFINE_EVENT(irqmod_line, irqmod_stop,
	TP_PROTO(u32 irq, u32 policy),
	TP_ARGS(irq, policy)
);

/* The line has this policy from now on */
DEFINE_EVENT(irqmod_line, irqmod_policy,
	TP_PROTO(u32 irq, u32 policy),
	TP_ARGS(irq, policy)
);

/* The line is disabled once, or enabled once */
TRACE_EVENT(irqmod_mask,
	TP_PROTO(u32 irq, u32 how),
	TP_ARGS(irq, how),
	TP_STRUCT__entry(
		__field(u32, irq)
		__field(u32, how)
	),
	TP_fast_assign(
		__entry->irq = irq;
		__entry->how = how;
	),
	TP_printk("irq=%u how=%s", __entry->irq, irqmod_show_mask(__entry->how))
);

TRACE_EVENT(irqmod_unmask,
	TP_PROTO(u32 irq),
	TP_ARGS(irq),
	TP_STRUCT__entry(
		__field(u32, irq)
	),
	TP_fast_assign(
		__entry->irq = irq;
	),
	TP_printk("irq=%u", __entry->irq)
);

DECLARE_EVENT_CLASS(irqmod_timer,
	TP_PROTO(u64 ns),
	TP_ARGS(ns),
	TP_STRUCT__entry(
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->ns = ns;
	),
	TP_printk("ns=%llu", __entry->ns)
);

/* The hold timer of this CPU is started, or started again with its list kept */
DEFINE_EVENT(irqmod_timer, irqmod_timer_arm,
	TP_PROTO(u64 ns),
	TP_ARGS(ns)
);

DEFINE_EVENT(irqmod_timer, irqmod_timer_push,
	TP_PROTO(u64 ns),
	TP_ARGS(ns)
);

/* It expired, and as many lines were released */
TRACE_EVENT(irqmod_timer_expire,
	TP_PROTO(u32 lines),
	TP_ARGS(lines),
	TP_STRUCT__entry(
		__field(u32, lines)
	),
	TP_fast_assign(
		__entry->lines = lines;
	),
	TP_printk("lines=%u", __entry->lines)
);

/* The timer of a line is started, which schedules its softirq poller */
TRACE_EVENT(irqmod_poll_after,
	TP_PROTO(u32 irq, u64 ns),
	TP_ARGS(irq, ns),
	TP_STRUCT__entry(
		__field(u32, irq)
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->irq = irq;
		__entry->ns = ns;
	),
	TP_printk("irq=%u ns=%llu", __entry->irq, __entry->ns)
);

#endif /* _RUST_IRQMOD_TRACE_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
