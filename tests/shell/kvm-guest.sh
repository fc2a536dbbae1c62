# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Loaded by tests of tests/faults/serve-windows: a fake QEMU and the KVM of its host, in the directory dir.
# shellcheck disable=SC2154

kvm_guest_uuid=1f0c7f4e-5c0e-4b5e-9d0a-2f6a4f1f2b3c

# Answers at dir/guest; VIRT_WSS_SYSROOT is to be dir/host. -> kvm_guest_pid
kvm_guest_start() {
	local end=$((SECONDS + 300)) kvm
	printf '%s\n' 'ram 16 4 memfd' 'set kvm on' 'set name guest' "set uuid $kvm_guest_uuid" \
		'on qom-get' 'return "pc-q35-7.2-machine"' >"$dir/script"
	"$WSS_BUILDDIR/tests/qmp/fake-qmp" "$dir/guest" "$dir/script" -uuid "$kvm_guest_uuid" \
		>"$dir/ready" 2>&1 3>&- &
	kvm_guest_pid=$!
	until grep -q '^ready' "$dir/ready"; do
		[ $SECONDS -lt $end ] || { echo 'no fake guest' >&2; return 1; }
		read -rt 0.02 <> <(:) || true
	done
	kvm=$dir/host/sys/kernel/debug/kvm/$kvm_guest_pid-3
	mkdir -p "$dir/host/sys/module/kvm_intel/parameters" "$kvm"
	ln -s /proc "$dir/host/proc"
	echo Y >"$dir/host/sys/module/kvm_intel/parameters/ept"
	echo 320 >"$kvm/pages_4k"
	echo 0 | tee "$kvm/pages_2m" >"$kvm/pages_1g"
}

# Whether nothing is left of a window: the guest is not stopped, not traced and not locked.
kvm_guest_at_rest() {
	! sed 's/.*) //' /proc/"$kvm_guest_pid"/task/*/stat | grep -q '^[TtZ]' || { echo 'stopped'; return 1; }
	grep -q '^TracerPid:.0$' "/proc/$kvm_guest_pid/status" || { echo 'traced'; return 1; }
	flock -n "/proc/$kvm_guest_pid/clear_refs" true 2>/dev/null || { echo 'locked'; return 1; }
}
