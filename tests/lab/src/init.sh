#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The guest's first process: sets the machine up, then serves commands from the second serial line.

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev 2>/dev/null
mkdir -p /dev/shm /tmp /mnt
mount -t tmpfs tmpfs /dev/shm
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
ln -s /proc/self/fd /dev/fd 2>/dev/null

set_if_there() {
	[ -e "$1" ] && echo "$2" > "$1"
}
set_if_there /proc/sys/kernel/printk_devkmsg on
set_if_there /proc/sys/kernel/watchdog_thresh 1
set_if_there /proc/sys/kernel/hung_task_timeout_secs 10
set_if_there /sys/module/rcupdate/parameters/rcu_cpu_stall_timeout 3

export PATH=/bin HOME=/ TERM=dumb
stty -F /dev/ttyS1 raw -echo
exec </dev/ttyS1 >/dev/ttyS1 2>&1
printf '\036ready\n'
while read -r number command; do
	command=$(echo "$command" | base64 -d)
	echo "<5>lab: #$number: $(echo "$command" | head -n 1 | cut -c 1-200)" > /dev/kmsg
	sh -c "$command" </dev/null
	printf '\036end %s %s\n' "$number" "$?"
done
echo "<2>lab: the command channel is closed" > /dev/kmsg
poweroff -f
