#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Takes commands from the second serial line: a number and the command in base64.

printf '\036ready\n'
while read -r number command; do
	command=$(echo "$command" | base64 -d)
	echo "<5>lab: #$number: $(echo "$command" | head -n 1 | cut -c 1-200)" > /dev/kmsg
	sh -c "$command" </dev/null
	printf '\036end %s %s\n' "$number" "$?"
done
