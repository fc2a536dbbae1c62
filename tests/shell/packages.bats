#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests what can be said of the packages without building them; make check-packages builds and runs one.

# An entry of the list would otherwise be forgotten in one of the two.
@test "the packages need what configure asks for" {
	local module
	cd "$WSS_SRCDIR" || return 1
	sed -n 's/^PKG_CHECK_MODULES(\[[A-Z0-9_]*\], \[\([a-z0-9.-]*\) .*/\1/p' configure.ac | grep -vx cmocka >"$BATS_TEST_TMPDIR/modules"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/modules")" -ge 7 ]
	while read -r module; do
		grep -qx "BuildRequires:  pkgconfig($module)" dist/virt-wss.spec || { echo "spec: $module"; return 1; }
	done <"$BATS_TEST_TMPDIR/modules"
	for package in libeconf libmicrohttpd libjson-c libsqlite3 libvirt libxml2 libncurses libbpf; do
		grep -qx " $package-dev," debian/control
		grep -q "$package-dev" bootstrap
	done
}

@test "the build of the Debian package runs tests, unless it is told not to" {
	cd "$WSS_SRCDIR" || return 1
	DEB_BUILD_OPTIONS='' make -n -f debian/rules override_dh_auto_test | grep -F "check TESTS='\$(VALGRIND_TESTS)'" ||
		{ make -n -f debian/rules override_dh_auto_test; false; }
	grep -q '^VALGRIND_TESTS = ' tests/tools/Makemodule.am
	! DEB_BUILD_OPTIONS='parallel=2 nocheck' make -n -f debian/rules override_dh_auto_test | grep dh_auto_build || false
}

# The spec builds from a directory that is not there yet when it is parsed.
@test "the spec has what is installed as documentation, and reads no file when it is parsed" {
	cd "$WSS_SRCDIR" || return 1
	sed -n '/^dist_doc_DATA += /,/[^\\]$/p' docs/Makemodule.am | grep -oE '[^[:space:]]+\.(md|json)' >"$BATS_TEST_TMPDIR/installed"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/installed")" -ge 12 ]
	# shellcheck disable=SC2046
	ls -d $(sed -n 's/^%doc //p' dist/virt-wss.spec) >"$BATS_TEST_TMPDIR/packaged"
	run grep -vxFf "$BATS_TEST_TMPDIR/packaged" "$BATS_TEST_TMPDIR/installed"
	[ "$output" = '' ]
	! grep -E '^%(sysusers|tmpfiles)_create_(compat|package)' dist/virt-wss.spec || false
}

@test "other releases of Debian come from where apt takes this machine's" {
	local codename list=$BATS_TEST_TMPDIR/sources.list
	command -v apt-get >/dev/null || skip "needs apt"
	codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	# shellcheck source=/dev/null
	. "$WSS_SRCDIR/vm-images/debian-package.sh"
	export APT_CONFIG=$BATS_TEST_TMPDIR/apt.conf
	cat >"$APT_CONFIG" <<-CONF
		Dir::Etc::SourceList "$list";
		Dir::Etc::SourceParts "/dev/null";
		Dir::State::Lists "$BATS_TEST_TMPDIR/lists";
	CONF
	printf 'deb file:/srv/%s %s main\n' security "$codename-security" other sid mirror "$codename" >"$list"
	[ "$(wss_debian_mirror)" = file:/srv/mirror ]
	printf 'deb file:/srv/other sid main\n' >"$list"
	run wss_debian_mirror
	[ "$status" != 0 ]
}

@test "removing the Debian package gives guests their memory back, before a purge deletes the journal" {
	cd "$BATS_TEST_TMPDIR" || return 1
	mkdir bin
	# shellcheck disable=SC2016
	printf '#!/bin/sh\necho "$*" >>calls\nexit "${RESULT-0}"\n' >bin/virt-wss
	printf '#!/bin/sh\n' >bin/deb-systemd-invoke
	chmod +x bin/*
	sed "s|/var/lib/virt-wss/|$PWD/|" "$WSS_SRCDIR/debian/virt-wss.prerm" >prerm
	PATH=$PWD/bin:$PATH sh prerm remove
	[ ! -e calls ]
	touch history.db
	PATH=$PWD/bin:$PATH sh prerm upgrade 2
	[ ! -e calls ]
	PATH=$PWD/bin:$PATH sh prerm remove
	[ "$(cat calls)" = "balloon --restore --history $PWD/history.db" ]
	# A guest that cannot be restored does not keep the package from being removed.
	RESULT=1 PATH=$PWD/bin:$PATH run sh prerm remove
	[ "$status" = 0 ]
	[[ $output == *"guests may still lack memory: a purge deletes $PWD/history.db"* ]]
}

@test "no host of a registry is named" {
	local hosts='(deb|snapshot|security|ftp[a-z.]*)[.]debian[.]org|registry[.]npmjs|pypi[.]org|fastly[.]net|proxy[.]golang'
	cd "$WSS_SRCDIR" || return 1
	run grep -rnIE --exclude-dir=.git --exclude-dir='build*' --exclude-dir=autom4te.cache "$hosts" .
	echo "$output"
	[ "$status" = 1 ]
}
