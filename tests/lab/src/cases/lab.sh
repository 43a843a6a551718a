# SPDX-License-Identifier: GPL-2.0
# What the guest cases share; they read it by ". /etc/lab.sh".

DISK=/dev/nvme0n1

wait_for() { # wait_for SECONDS TEST...
	left=$(($1 * 10)); shift
	until "$@"; do
		left=$((left - 1))
		[ $left -gt 0 ] || { echo "not in time: $*"; return 1; }
		sleep 0.1
	done
}

wait_disk() { wait_for 30 [ -b ${1:-$DISK} ] && set_scheduler; }
wait_live() { wait_for 30 grep -q live /sys/class/nvme/nvme0/state; }

set_scheduler() {
	for queue in /sys/block/nvme*/queue; do
		echo none > $queue/scheduler
	done
}

# The interrupts of our controllers.
vectors() { grep nvme /proc/interrupts | cut -d: -f1; }

# Says what is not as it has to be when nothing goes on; nothing means that all is well.
idle_faults() {
	for irq in $(vectors); do
		file=/sys/kernel/debug/irq/irqs/$irq
		grep -q '^ddepth: *0$' $file || echo "irq $irq: $(grep '^ddepth' $file)"
	done
	for disk in /sys/block/nvme*; do
		[ -e $disk/inflight ] || continue
		read -r reads writes < $disk/inflight
		[ "$reads $writes" = "0 0" ] || echo "$disk: in flight: $reads $writes"
	done
}

# A sum over all lines of one counter of irqmod.
counter() { cat /sys/kernel/debug/irqmod/*/stats | grep "^$1" | awk '{ sum += $2 } END { print sum + 0 }'; }

address() { basename $(readlink -f /sys/class/nvme/${1:-nvme0}/device); }
