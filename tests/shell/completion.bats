#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests bash completion with the script that the program prints, on libvirt's test
# driver.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	mkdir bin
	ln -s "$WSS_BUILDDIR/virt-wss" bin/virt-wss
	PATH=$PWD/bin:$PATH
	export LIBVIRT_DEFAULT_URI=test:///default
	virt-wss completion bash >script
	# shellcheck disable=SC1091
	. ./script
}

# Prints the completions of a line that ends at the cursor, one per line.
after() { # LINE
	COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
	COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
	_virt_wss
	printf '%s\n' "${COMPREPLY[@]}"
}

is() { # EXPECTED LINE: exactly these words, in any order
	local got
	got=$(after "$2" | sort | tr '\n' ' ')
	echo "'$2' -> $got"
	[ "$got" = "$1 " ]
}

has() { # WORD LINE
	after "$2" | grep -qxF -e "$1" || { echo "'$2': no $1 in $(after "$2")"; false; }
}

has_not() { # WORD LINE
	run after "$2"
	[[ $'\n'$output$'\n' != *$'\n'"$1"$'\n'* ]] || { echo "'$2': $1"; false; }
}

commands() {
	virt-wss --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'
}

beginning() { # START: the commands that begin so, sorted
	commands | grep "^$1" | sort | paste -sd ' '
}

@test "the script is for virt-wss, and is valid shell" {
	complete -p virt-wss | grep -q _virt_wss
	bash -n script
	! command -v shellcheck || shellcheck script
	run -2 virt-wss completion zsh
	run -2 virt-wss completion
}

@test "commands are completed" {
	local start
	[[ " $(beginning re) " == *" record "* ]]
	for start in sam re he; do
		is "$(beginning $start)" "virt-wss $start"
		is "$(beginning $start)" "virt-wss --debug -c test:///default $start"
		is "$(beginning $start)" "virt-wss help $start"
	done
	is "bash" "virt-wss completion "
	# An unknown command has no completions.
	is "" "virt-wss smaple "
}

@test "each option of each command is completed, and no other's" {
	local command option offered
	for command in $(commands); do
		offered=$'\n'$(after "virt-wss $command -")$'\n'
		for option in $(virt-wss "$command" --help | sed -nE 's/^  (-., )?(--[a-z-]+).*/\2/p') --help -c; do
			[[ $offered == *$'\n'"$option"$'\n'* ]] || { echo "$command: no $option in $offered"; false; }
		done
	done
	has_not --hot-first "virt-wss sample --"
	has_not --window "virt-wss --"
	is "--version" "virt-wss --v"
	is "--wide --window" "virt-wss sample x --wi"
}

@test "values of options are completed" {
	is "csv json table" "virt-wss list --output "
	is "json" "virt-wss list --output=j"
	is "4k auto both native" "virt-wss sample --granularity "
	is "4k native" "virt-wss record --granularity "
	is "4k auto native" "virt-wss profile --granularity "
	is "day hour" "virt-wss history --by "
	is "no none yes" "virt-wss policy set --opt-out "
	is "$("$WSS_BUILDDIR/virt-wss" --version | sed -n 's/^methods:/auto/p' | tr ' ' '\n' | sort | tr '\n' ' ' | sed 's/ $//')" \
		"virt-wss sample --method "
	is "wss_bytes" "virt-wss sample --columns wss_b"
	is "domain,wss_bytes" "virt-wss sample --columns domain,wss_b"
	is "-wss_bytes" "virt-wss sample --sort -wss_b"
	# A time or a number has no completions.
	is "" "virt-wss sample --window "
	# The value of an option is mistaken neither for the command nor for a domain.
	is "$(beginning sam)" "virt-wss -c list sam"
}

@test "each value that is offered is accepted" {
	local command help option value n=0
	for command in sample profile methods list recommend balloon "policy get"; do
		help=$'\n'$(virt-wss "${command% *}" --help)
		for option in output granularity method recorder columns; do
			[[ $help == *$'\n'"  --$option "* ]] || continue
			for value in $(after "virt-wss $command --$option "); do
				# The list of columns contains those of both granularities.
				[ "$command $option" != "sample columns" ] || set -- --granularity both
				# shellcheck disable=SC2086
				run virt-wss $command test "$@" --"$option" "$value"
				set --
				[ "$status" != 2 ] || { echo "$command --$option $value: $output"; false; }
				n=$((n + 1))
			done
		done
	done
	[ "$n" -gt 60 ]
}

@test "files are completed" {
	touch web1.rec "a file.rec"
	mkdir web1.d
	is "web1.d web1.rec" "virt-wss report web"
	is "web1.d web1.rec" "virt-wss record x -o web"
	is "web1.d web1.rec" "virt-wss profile x --plot=web"
	has "a file.rec" "virt-wss diff "
}

domain_xml() { # NAME N
	printf '%s' "<domain type='test'><name>$1</name><uuid>11111111-2222-3333-4444-55555555000$2</uuid>" \
		"<memory>1024</memory><os><type>hvm</type></os></domain>" >"$2.xml"
	echo "<domain file='$PWD/$2.xml'/>"
}

@test "names and UUIDs of domains are completed" {
	is "test" "virt-wss sample te"
	is "test" "virt-wss policy set te"
	is "clear get set" "virt-wss policy "
	{
		echo '<node>'
		domain_xml web1 1
		domain_xml web2 2
		domain_xml 'two words' 3
		echo '</node>'
	} >node.xml
	is "web1 web2" "virt-wss -c test://$PWD/node.xml sample web"
	is "web1 web2" "virt-wss sample -c test://$PWD/node.xml other web"
	is "web2" "virt-wss --connect=test://$PWD/node.xml sample web2"
	is "two\\ words" "virt-wss -c test://$PWD/node.xml list tw"
	is "11111111-2222-3333-4444-555555550002" \
		"virt-wss -c test://$PWD/node.xml sample --uuid 11111111-2222-3333-4444-555555550002"
	# Without a connection there are no names, and nothing appears on the terminal.
	is "" "virt-wss -c nonsense:///x sample "
}

@test "quotes, and names with blanks" {
	{
		echo '<node>'
		domain_xml 'two words' 1
		domain_xml 'two more' 2
		domain_xml 'a"b' 3
		echo '</node>'
	} >node.xml
	local quoted="-c 'test://$PWD/node.xml'" escaped="--connect test://$PWD/node\\.xml"
	is "two\\ more two\\ words" "virt-wss $quoted sample two"
	is "two\\ words" "virt-wss $escaped sample two\\ w"
	is "two words" "virt-wss $escaped sample 'two w"
	is "two words" "virt-wss $escaped sample \"two w"
	is 'a\"b' "virt-wss $escaped sample \"a"
	is 'a"b' "virt-wss $escaped sample 'a"
	# The end of a word in quotes does not begin the next one.
	is "two\\ more" "virt-wss $escaped sample 'two words' two\\ m"
	is "--wide --window" "virt-wss $escaped sample 'two words' --wi"
	# An empty word counts as a word.
	is "get" "virt-wss -c '' policy ge"
}

@test "the name of a domain is not run" {
	{
		echo '<node>'
		domain_xml '$(touch x1)`touch x2`' 1
		echo '</node>'
	} >node.xml
	after "virt-wss -c test://$PWD/node.xml sample "
	[ -n "$(after "virt-wss -c test://$PWD/node.xml sample ")" ]
	eval "set -- $(after "virt-wss -c test://$PWD/node.xml sample ")"
	[ ! -e x1 ]
	[ ! -e x2 ]
	[ "$1" = '$(touch x1)`touch x2`' ]
}

@test "a colon in the word: only the part after it is replaced" {
	is "///session ///system" "virt-wss -c qemu:"
	is "///system" "virt-wss -c qemu:///sy"
}
