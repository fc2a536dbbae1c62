# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Sourced: fetch Debian packages without installing them.

wss_cache_dir() {
	echo "${WSS_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/virt-wss}"
}

# wss_candidate PACKAGE [APT-OPTION...]: print its version, if apt knows one.
wss_candidate() {
	local package=$1
	shift
	apt-cache "$@" policy "${package:-none}" 2>/dev/null | sed -n 's/^ *Candidate: //p'
}

# wss_debian_mirror: print the address of the Debian archive that this machine's apt takes its own release from.
wss_debian_mirror() {
	local codename mirror
	# shellcheck disable=SC1091,SC2153
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	mirror=$(apt-get --print-uris update | sed -nE "s,^'(.*)/dists/($codename|(old)*stable)/main/.*,\\1,p" | head -n 1)
	[ -n "$mirror" ] || { echo "apt takes no packages from a Debian $codename" >&2; return 1; }
	echo "$mirror"
}

# fill_directory DIR COMMAND...: unless DIR exists, run COMMAND in an empty directory and
# rename the "tree" that it creates there to DIR. Concurrent calls are harmless: the first
# rename wins.
fill_directory() {
	local dir=$1 work result=1
	shift
	[ ! -d "$dir" ] || return 0
	mkdir -p "$(dirname "$dir")"
	work=$(mktemp -d "$(dirname "$dir")/.fetch.XXXXXX")
	# apt drops privileges for the download, so its user must be able to enter the
	# directory.
	chmod 755 "$work"
	if (cd "$work" && mkdir tree && "$@" >&2) &&
		{ mv -T "$work/tree" "$dir" 2>/dev/null || [ -d "$dir" ]; }; then
		result=0
	else
		echo "cannot fetch $(basename "$dir")" >&2
	fi
	rm -rf "$work"
	return $result
}

unpack() { # DIR: the packages in it
	find "$1" -maxdepth 1 -name '*.deb' -print0 | xargs -0 -I '{}' dpkg-deb -x '{}' tree
}

download_alone() { # "PACKAGE..." [APT-OPTION...]
	local packages
	read -ra packages <<<"$1"
	shift
	apt-get "$@" -q -o APT::Sandbox::User=root download "${packages[@]}" && unpack .
}

# Debian's kernels from 7.0 on are split, with everything below usr/lib/modules; older ones
# have boot/vmlinuz-VERSION and lib/modules. Both are made available in the older places.
download_kernel() { # "PACKAGE..." [APT-OPTION...]
	local vmlinuz version
	download_alone "$@" || return
	for vmlinuz in tree/usr/lib/modules/*/vmlinuz; do
		[ -e "$vmlinuz" ] || continue
		version=$(basename "$(dirname "$vmlinuz")")
		mkdir -p tree/boot
		ln -s "../${vmlinuz#tree/}" "tree/boot/vmlinuz-$version"
		[ -e tree/lib ] || ln -s usr/lib tree/lib
	done
}

download_with_libraries() { # PACKAGE [APT-OPTION...]
	local package=$1
	shift
	mkdir -p archives/partial
	: >status
	apt-get "$@" -q -y -o Dir::State::Status="$PWD/status" -o Dir::Cache::Archives="$PWD/archives" \
		-o APT::Install-Recommends=no --download-only install "$package" && unpack archives
}

# wss_fetch_package PACKAGE DIR [APT-OPTION...]: unpack PACKAGE into DIR, unless DIR is there.
wss_fetch_package() {
	local package=$1 dir=$2
	shift 2
	fill_directory "$dir" download_alone "$package" "$@"
}

# wss_fetch_with_libraries PACKAGE DIR [APT-OPTION...]: unpack PACKAGE and everything
# that it depends on, down to the C library, into DIR, unless DIR exists: for a program
# of another release.
wss_fetch_with_libraries() {
	local package=$1 dir=$2
	shift 2
	fill_directory "$dir" download_with_libraries "$package" "$@"
}

# wss_debian_kernel METAPACKAGE [APT-OPTION...]: print the directory of the unpacked kernel
# package that METAPACKAGE depends on, with the parts that it is split into; fetch it when the
# cache has no copy of just that version. The options go to every apt command. The package's
# name is resolved here because apt-get would take it for a pattern. If apt cannot answer (no
# network, no lists), a cached kernel of this METAPACKAGE and of the suite that wss_suite names
# will do.
wss_debian_kernel() {
	local meta=$1 cache package version dir parts
	shift
	cache=$(wss_cache_dir)/kernels/$meta${wss_suite:+-$wss_suite}
	mkdir -p "$cache"
	package=$(apt-cache "$@" depends "$meta" 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1)
	version=$(wss_candidate "$package" "$@")
	dir=$cache/${package}_${version//[:\/]/_}
	if [ -z "$package" ] || [ -z "$version" ]; then
		dir=$(find "$cache" -mindepth 1 -maxdepth 1 -name 'linux-image-*' | sort -V | tail -n 1)
		[ -n "$dir" ] || { echo "apt knows no package $meta" >&2; return 1; }
	fi
	parts=$(apt-cache "$@" depends "${package:-none}" 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-\(base\|binary\|modules\)-[0-9].*\)$/\1/p' | tr '\n' ' ')
	fill_directory "$dir" download_kernel "$package $parts" "$@" || return 1
	echo "$dir"
}
