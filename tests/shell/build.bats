#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the build system: generated files are made before what includes them.

# Whether, when only virt-wss is made, the command that makes HEADER comes before the one that
# compiles SOURCE.
made_before() { # HEADER SOURCE
	local header source
	header=$(grep -nF "$1.new" commands | head -n 1)
	source=$(grep -n -- " -c .*$2\$" commands | head -n 1)
	printf '%s: %s\n%s: %s\n' "$1" "${header:0:80}" "$2" "${source:0:80}"
	[ -n "$header" ] && [ -n "$source" ] && [ "${header%%:*}" -lt "${source%%:*}" ]
}

@test "virt-wss alone can be made in a fresh build directory" {
	cd "$BATS_TEST_TMPDIR"
	"$WSS_SRCDIR/configure" --quiet >configure.out 2>&1 || { cat configure.out; false; }
	# The commands in their order; running them would take too long.
	make -n virt-wss >commands
	made_before src/cmd/help-text.h src/cmd/dispatch.c
	made_before src/cmd/help-text.h src/cmd/balloon.c
	made_before src/cmd/completion-text.h src/cmd/completion.c
	if grep -qF 'S["WITH_BPF_TRUE"]=""' config.status; then
		made_before src/kvm/kvm.skel.h src/kvm/vm-bpf.c
	fi
}

# Installs the existing build into an empty directory.
@test "make install puts everything where it is looked for" {
	local file found
	make -C "$WSS_BUILDDIR" install DESTDIR="$BATS_TEST_TMPDIR/root" prefix=/opt/x \
		>"$BATS_TEST_TMPDIR/install.out" 2>&1 ||
		{ cat "$BATS_TEST_TMPDIR/install.out"; false; }
	cd "$BATS_TEST_TMPDIR/root"
	find . -type f | sort
	for file in opt/x/bin/virt-wss opt/x/share/man/man1/virt-wss.1 \
		opt/x/share/doc/virt-wss/README.md opt/x/share/doc/virt-wss/recording-format.md \
		opt/x/share/virt-wss/policy.rng \
		opt/x/lib/sysusers.d/virt-wss.conf opt/x/lib/tmpfiles.d/virt-wss.conf etc/virt-wss/serve.conf; do
		[ -s "$file" ]
	done
	found=$(find . -path '*/bash-completion/completions/virt-wss')
	[ -s "$found" ]
	bash -n "$found"
	grep -q 'complete -F' "$found"
	for file in virt-wss-sample.service virt-wss-sample.timer; do
		[ -s "$(find . -path "*/systemd/system/$file")" ]
	done
	grep -qx 'ExecStart=/.*/bin/virt-wss .*' "$(find . -name virt-wss-sample.service)"
	# Settings that were changed stay.
	echo '# changed' >>etc/virt-wss/serve.conf
	make -C "$WSS_BUILDDIR" install DESTDIR="$BATS_TEST_TMPDIR/root" prefix=/opt/x >/dev/null 2>&1
	grep -qx '# changed' etc/virt-wss/serve.conf
	cp "$WSS_SRCDIR/dist/serve.conf" etc/virt-wss
	# And make uninstall removes all of it.
	make -C "$WSS_BUILDDIR" uninstall DESTDIR="$BATS_TEST_TMPDIR/root" prefix=/opt/x >/dev/null 2>&1
	[ -z "$(find . -type f)" ]
}

@test "units go where systemd looks for them under each prefix" {
	directory() { # CONFIGURE-OPTION...: where units go
		"$WSS_SRCDIR/configure" --quiet --no-create --cache-file=cache "$@" >configure.out 2>&1 || { cat configure.out; return 1; }
		printf '%s\n' 'prefix=@prefix@' 'exec_prefix=@exec_prefix@' 'libdir=@libdir@' 'systemdunitdir=@systemdunitdir@' \
			'print: ; @echo $(systemdunitdir)' >variables.in
		./config.status --quiet --file=variables:variables.in
		make -s --no-print-directory -f variables print
	}
	mkdir -p "$BATS_TEST_TMPDIR/build"
	cd "$BATS_TEST_TMPDIR/build"
	[ "$(directory)" = /usr/local/lib/systemd/system ]
	if pkg-config --exists systemd; then
		[ "$(directory --prefix=/usr)" = "$(pkg-config --variable=systemdsystemunitdir systemd)" ]
	fi
	[ "$(directory --with-systemdunitdir=/else/where)" = /else/where ]
}

# The build that make check-asan makes, up to its configure.
@test "a build with sanitizers has every check, or configure fails" {
	mkdir -p "$BATS_TEST_TMPDIR/build"
	cd "$BATS_TEST_TMPDIR/build"
	make -s --no-print-directory -C "$WSS_BUILDDIR" -f Makefile -f - print <<<'print: ; $(info $(value asan_build))' |
		grep -q -- '--enable-sanitizers CC=clang'
	"$WSS_SRCDIR/configure" --quiet --enable-sanitizers CC=clang >configure.out 2>&1 || { cat configure.out; false; }
	printf 'int main(int argc, char **argv) { unsigned char cut = argc * 300; return !argv + cut; }\n' >cut.c
	make -s --no-print-directory -f Makefile -f - cut <<<'cut: cut.c ; @$(CC) $(SANITIZE_CFLAGS) $(SANITIZE_LDFLAGS) -o $@ $<'
	run ./cut
	[ "$status" != 0 ]
	[[ "$output" = *'runtime error: implicit conversion'* ]]
	run "$WSS_SRCDIR/configure" --quiet --enable-sanitizers CC=gcc
	[ "$status" = 1 ]
	[[ "$output" = *'--enable-sanitizers needs CC=clang'* ]]
}

# Debian has no libraries for musl, so nothing is linked: the headers of the libraries, sys/queue.h among them, which
# musl systems have in a package of its own, serve beside those of musl.
@test "every source compiles with musl" {
	local file
	command -v musl-gcc >/dev/null || skip "needs musl-gcc"
	mkdir -p "$BATS_TEST_TMPDIR/headers/sys" "$BATS_TEST_TMPDIR/build"
	cd "$BATS_TEST_TMPDIR/build"
	dpkg -L libc6-dev >libc
	for file in /usr/include/* "/usr/include/$(gcc -print-multiarch)"/*; do
		[ -d "/usr/include/$(uname -m)-linux-musl/${file##*/}" ] || grep -qxF "$file" libc ||
			ln -sfn "$file" ../headers
	done
	ln -s "/usr/include/$(gcc -print-multiarch)/sys/queue.h" ../headers/sys
	"$WSS_SRCDIR/configure" --quiet CC="musl-gcc -isystem $BATS_TEST_TMPDIR/headers" \
		>configure.out 2>&1 || { cat configure.out; false; }
	make -s --no-print-directory -f Makefile -f - print <<<'print: ; @echo $(noinst_LIBRARIES) $(virt_wss_OBJECTS)' >objects
	grep -q libcmd.a objects
	# Nothing is written, so there is nothing to put into an archive.
	# shellcheck disable=SC2046
	make -k AR=true RANLIB=true CFLAGS="-Werror -fsyntax-only" LIBCURL_CFLAGS= $(cat objects) >make.out 2>&1 || { grep -E 'error|warning|\*\*\*' make.out; false; }
}

@test "every test script is in a list that a target runs" {
	cd "$WSS_SRCDIR"
	for file in tests/*/*.bats; do
		grep -q "	$file\( \\\\\)\?\$" tests/tools/Makemodule.am || { echo "$file is in no list"; false; }
	done
}
