// SPDX-License-Identifier: GPL-2.0
/*
 * The tracepoints of irqmod. Drivers trigger them too: what is generic is
 * compiled into them.
 */
#include <linux/export.h>

#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include "trace.h"

#ifdef CONFIG_TRACEPOINTS
#define IRQMOD_EXPORT_TRACE(name)			\
	EXPORT_TRACEPOINT_SYMBOL_GPL(name);		\
	EXPORT_SYMBOL_GPL(rust_do_trace_##name)

IRQMOD_EXPORT_TRACE(irqmod_defer);
IRQMOD_EXPORT_TRACE(irqmod_poll);
IRQMOD_EXPORT_TRACE(irqmod_empty);
IRQMOD_EXPORT_TRACE(irqmod_rearm);
IRQMOD_EXPORT_TRACE(irqmod_pause);
IRQMOD_EXPORT_TRACE(irqmod_resume);
IRQMOD_EXPORT_TRACE(irqmod_stop);
IRQMOD_EXPORT_TRACE(irqmod_policy);
IRQMOD_EXPORT_TRACE(irqmod_mask);
IRQMOD_EXPORT_TRACE(irqmod_unmask);
IRQMOD_EXPORT_TRACE(irqmod_timer_arm);
IRQMOD_EXPORT_TRACE(irqmod_timer_push);
IRQMOD_EXPORT_TRACE(irqmod_timer_expire);
IRQMOD_EXPORT_TRACE(irqmod_poll_after);
#endif
