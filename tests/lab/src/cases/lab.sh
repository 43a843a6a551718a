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

# Hundredths of a second since boot.
centi() { read -r up _ < /proc/uptime; echo ${up%.*}${up#*.}; }

within() { # within SECONDS COMMAND...: the command has to end so soon
	limit=$(($1 * 100)); shift
	began=$(centi)
	"$@" || return
	took=$(($(centi) - began))
	[ $took -le $limit ] || { echo "took ${took}0 ms: $*"; return 1; }
}

write() { echo "$1" > $2; }

# A node may still be that of a disk that is just going, and so may its queue.
wait_disk() { wait_for 30 set_up ${1:-$DISK}; }
set_up() { [ -b $1 ] && set_scheduler; }
wait_live() { wait_for 30 grep -q live /sys/class/nvme/nvme0/state; }

set_scheduler() {
	for queue in /sys/block/nvme*/queue; do
		echo none > $queue/scheduler || return
	done
}

# The interrupts of our controllers.
vectors() { grep nvme /proc/interrupts | cut -d: -f1; }

# Says what is not as it has to be when nothing goes on; nothing means that all is well.
idle_faults() {
	[ -n "$(vectors)" ] || echo "no vector to look at"
	for irq in $(vectors); do
		file=/sys/kernel/debug/irq/irqs/$irq
		grep -q '^ddepth: *0$' $file || echo "irq $irq: $(grep '^ddepth' $file)"
		grep -E 'IRQD_IRQ_(MASKED|DISABLED)' $file | sed "s/^ */irq $irq: /"
	done
	for disk in /sys/block/nvme*; do
		[ -e $disk/inflight ] || continue
		read -r reads writes < $disk/inflight
		[ "$reads $writes" = "0 0" ] || echo "$disk: in flight: $reads $writes"
	done
}

# The sum of the values with this name; a name that there is not fails rather than being 0.
sum_of() { awk -v name="$1" '$1 == name { sum += $2; n++ } END { if (!n) exit 1; print sum + 0 }'; }

# A sum over all lines of one counter of irqmod.
counter() { cat /sys/kernel/debug/irqmod/*/stats | sum_of $1; }

# The same of what the lines' masks were.
mask_counter() { cat /sys/kernel/debug/irqmod/*/mask | sum_of $1; }

# What the interrupt core knows of a line, by the line's name.
core_file() { echo /sys/kernel/debug/irq/irqs/$(grep " $1\$" /proc/interrupts | cut -d: -f1 | tr -d ' '); }

# Whether it says all of this.
core_says() { # core_says NAME PATTERN...
	file=$(core_file $1); shift
	for pattern in "$@"; do grep -q "$pattern" $file || return 1; done
}

address() { basename $(readlink -f /sys/class/nvme/${1:-nvme0}/device); }
