#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests that no guest is measured during a job that libvirt shows in its own way for each: of the domain (backup)
# or of a disk (copy, pull, commit).

load functions.sh
load daemon-functions.sh

# So many bytes a second that a job of this disk takes most of a day: none ends while it is looked at.
slow=1024

setup_file() {
	root_setup_file libvirtd virsh
	[ -z "$root_missing" ] || return 0
	daemon_new
	head -c 64M /dev/urandom | as_nobody tee "$dir/disk" >/dev/null
	local disk="<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='$dir/disk'/>"
	disk+="<target dev='vda' bus='virtio'/></disk>"
	embed_guest_dir=$dir type=qemu memory=128 args='wss.map=32 wss.touch=8 wss.rate=200000' embed_guest_xml web1 |
		sed "s|$embed_root/web1.console|$dir/console|; s|</devices>|$disk</devices>|" >"$dir/web1.xml"
	on_daemon define "$dir/web1.xml"
	on_daemon start web1
	ln -s "$dir/console" "$(embed_console web1)"
	embed_guest_wait_ready web1
}

teardown_file() {
	[ -z "${dir-}" ] || on_daemon destroy web1 || true
	[ -z "${dir-}" ] || daemon_stop KILL
	root_teardown_file
}

setup() {
	root_setup
	as_nobody true
}

on_daemon() { # COMMAND...
	as_nobody virsh -q -c qemu:///session "$@"
}

sample() { # -> status, output
	run as_nobody "$dir/virt-wss" -c qemu:///session sample --method refs --window 100ms web1
}

is_measured() {
	sample
	[ "$status" = 0 ]
}

is_left_alone() { # JOB
	sample
	[ "$status" = 1 ]
	[[ $output = *"the guest has a job running ($1)"* ]]
}

@test "a backup" {
	as_nobody tee "$dir/backup.xml" >/dev/null <<-END
		<domainbackup mode='pull'><server transport='unix' socket='$dir/nbd'/>
		<disks><disk name='vda' type='file'><scratch file='$dir/scratch'/></disk></disks></domainbackup>
	END
	wait_until 60 is_measured
	on_daemon backup-begin web1 "$dir/backup.xml"
	is_left_alone backup
	on_daemon domjobabort web1
	wait_until 60 is_measured
}

@test "jobs of a disk" {
	wait_until 60 is_measured
	on_daemon blockcopy web1 vda "$dir/copy" --format raw --transient-job --bandwidth $slow --bytes
	is_left_alone 'block copy of vda'
	on_daemon blockjob web1 vda --abort
	wait_until 60 is_measured
	# The disk gets a backing chain, from which it pulls, or to which it commits.
	on_daemon snapshot-create-as web1 --disk-only --no-metadata --diskspec "vda,file=$dir/overlay"
	wait_until 60 is_measured
	on_daemon blockpull web1 vda --bandwidth $slow --bytes
	is_left_alone 'block pull of vda'
	on_daemon blockjob web1 vda --abort
	wait_until 60 is_measured
	on_daemon blockcommit web1 vda --active --bandwidth $slow --bytes
	is_left_alone 'block commit of vda'
	on_daemon blockjob web1 vda --abort
	wait_until 60 is_measured
}
