#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The guest's first process: sets the machine up and waits for orphans while another shell serves
# commands. It can't do that itself: an orphan's end would interrupt it in the middle of a line.

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev 2>/dev/null
mkdir -p /dev/shm /tmp /mnt
mount -t tmpfs tmpfs /dev/shm
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
ln -s /proc/self/fd /dev/fd 2>/dev/null

[ -e /proc/sys/kernel/printk_devkmsg ] && echo on > /proc/sys/kernel/printk_devkmsg
export PATH=/bin HOME=/ TERM=dumb
stty -F /dev/ttyS1 raw -echo
/serve </dev/ttyS1 >/dev/ttyS1 2>&1
echo "<2>lab: the command channel is closed" > /dev/kmsg
poweroff -f
