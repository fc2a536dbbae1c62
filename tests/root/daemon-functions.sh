# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Loaded, after functions.sh, by the tests of virt-wss with a libvirtd of an ordinary
# user (nobody), in the directory dir, at qemu:///session.
# shellcheck disable=SC2154

daemon_new() { # -> dir; started, for guests of virt-wss's own copy there
	export dir=$embed_root/s
	chmod 711 "$embed_root"
	install -d -o 65534 -g 65534 -m 700 "$dir" "$dir/run" "$dir/config" "$dir/config/libvirt"
	install -m 755 "$virt_wss" "$dir/virt-wss"
	install -m 644 "$embed_guest_dir/vmlinuz" "$embed_guest_dir/initrd" "$dir"
	echo 'stdio_handler = "file"' >"$dir/config/libvirt/qemu.conf"
	unset LIBVIRT_DEFAULT_URI
	daemon_start
}

as_nobody() { # COMMAND...
	nobody=(env HOME="$dir" XDG_RUNTIME_DIR="$dir/run" XDG_CONFIG_HOME="$dir/config"
		XDG_CACHE_HOME="$dir/cache" setpriv --reuid=65534 --regid=65534 --clear-groups)
	"${nobody[@]}" "$@"
}

daemon_pid() {
	cat "$dir/run/libvirt/libvirtd.pid" 2>/dev/null
}

daemon_runs() {
	kill -0 "$(daemon_pid)" 2>/dev/null
}

daemon_start() {
	daemon_runs || as_nobody libvirtd -d --timeout 300 3>&-
	wait_until 30 as_nobody timeout 100 virsh -q -c qemu:///session version >/dev/null 2>&1
}

daemon_gone() {
	! daemon_runs
}

daemon_stop() { # SIGNAL
	daemon_runs || return 0
	kill -"$1" "$(daemon_pid)"
	wait_until 20 daemon_gone
}
