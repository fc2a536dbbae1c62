#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests domains named like the ID or the UUID of another, on libvirt's test driver:
# each command reaches every domain that it lists, and refuses a word that matches two of
# them.

load functions.sh

virt_wss=$WSS_BUILDDIR/virt-wss
alpha=5c5a91e0-0b0d-4c1b-9d5f-00000000000a
one=5c5a91e0-0b0d-4c1b-9d5f-00000000000b
liar=5c5a91e0-0b0d-4c1b-9d5f-00000000000c

# Makes a host with alpha, whose ID is 1, a domain named 1, and one named like alpha's
# UUID.
setup() {
	mkdir -p "$BATS_TEST_TMPDIR/node"
	{
		echo '<node>'
		domain alpha $alpha
		domain 1 $one
		domain $alpha $liar
		echo '</node>'
	} >"$BATS_TEST_TMPDIR/node/node.xml"
	export LIBVIRT_DEFAULT_URI=test://$BATS_TEST_TMPDIR/node/node.xml
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
}

domain() { # NAME UUID
	echo "<domain type='test'><name>$1</name><uuid>$2</uuid><memory>1048576</memory>
		<os><type>hvm</type></os></domain>" >"$BATS_TEST_TMPDIR/node/$2.xml"
	echo "<domain file='$BATS_TEST_TMPDIR/node/$2.xml'/>"
}

# Whether the command prints a line for each of the three, and no other.
reaches_all() { # ARGUMENT...
	wss "$@" --output csv
	[ "$(field domain | sort -u)" = "$(printf '%s\n' 1 $alpha alpha)" ]
	# If UUIDs are printed, each appears once.
	[ -z "$(field uuid | tr -d '\n')" ] ||
		[ "$(field uuid | sort)" = "$(printf '%s\n' $alpha $one $liar)" ]
}

# Whether a word that matches two makes it exit with 1 and one line with the names and UUIDs of
# both.
refuses_word() { # WORD UUID UUID ARGUMENT...
	local word=$1 first=$2 second=$3
	shift 3
	wss "$@" "$word"
	[ "$status" = 1 ] || return 1
	[ "$(wc -l <<<"$err")" = 1 ] || return 1
	[[ $err == *"$word: matches two domains"*"'alpha' (UUID $first)"*"'$word' (UUID $second)"*": choose one with --uuid UUID" ]]
}

@test "every listed domain is reached, whatever its name" {
	reaches_all list
	reaches_all sample --window 100ms
	reaches_all sample --store --window 100ms
	reaches_all methods
	reaches_all policy get
	reaches_all recommend
	reaches_all balloon
	wss policy set --all --minimum 1GiB
	[ "$status" = 0 ]
}

@test "balloon --apply takes on each guest once" {
	wss balloon --apply
	[ "$status" = 5 ]
	[ "$(sed -n 's/^[^ ]* virt-wss: \(error: \)\?\([^ ]*\): refused: .*/\2/p' <<<"$err" | sort)" = \
		"$(printf '%s\n' 1 $alpha alpha)" ]
}

@test "a word that matches two domains is refused, with both named" {
	# Without a history, recommend prints another line about that.
	"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 1 1000000 1 $alpha
	for command in sample 'sample --store' profile 'record -o rec' methods list 'policy get' \
		'policy set --opt-out yes' 'policy clear' recommend balloon 'balloon --apply'; do
		# shellcheck disable=SC2086
		refuses_word 1 $alpha $one ${command/ rec/ $BATS_TEST_TMPDIR/rec}
		# shellcheck disable=SC2086
		refuses_word $alpha $alpha $liar ${command/ rec/ $BATS_TEST_TMPDIR/rec}
	done
}

@test "one bad word does not prevent the others" {
	wss list 1 alpha --output csv
	[ "$status" = 3 ]
	[ "$(field uuid | grep .)" = $alpha ]
}

@test "--uuid: the word is a UUID and nothing else" {
	wss list --uuid $alpha --output csv
	[ "$status" = 0 ]
	[ "$(field domain)" = alpha ]
	wss --uuid policy get ${alpha^^} $one --output csv
	[ "$status" = 0 ]
	[ "$(field domain)" = $'alpha\n1' ]
	wss sample --uuid ${alpha%a}f --window 100ms
	[ "$status" = 1 ]
	[[ $err == *'no such domain'* ]]
	for command in sample list policy\ clear balloon\ --restore; do
		for word in 1 alpha ${alpha//-/} ${alpha}0 ''; do
			# shellcheck disable=SC2086
			wss $command --uuid "$word"
			[ "$status" = 2 ]
			[[ $err == *"${word:+"'$word' is not a UUID"}"* ]] && [[ -n $word || $err == *'empty domain name'* ]]
		done
	done
}

taken() { # UUID NAME: the journal says that something was taken from it
	[ -e "$VIRT_WSS_HISTORY" ] ||
		"$WSS_BUILDDIR/tests/unit/make-history" "$VIRT_WSS_HISTORY" 1 1000000 1 \
			a1b2c3d4-0000-4000-8000-000000000000
	sqlite3 "$VIRT_WSS_HISTORY" "INSERT INTO balloon (uuid, name, time, original_bytes,
		from_bytes, to_bytes, reason, uri)
		VALUES ('$1', '$2', 1, 1073741824, 1073741824, 536870912, 'test', '');"
}

done_uuids() {
	sqlite3 "$VIRT_WSS_HISTORY" 'SELECT uuid FROM balloon WHERE done = 1'
}

@test "--restore gives nothing to a guest named like the UUID of one that is away" {
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	{
		echo '<node>'
		domain $alpha $liar
		echo '</node>'
	} >"$BATS_TEST_TMPDIR/node/node.xml"
	taken $alpha alpha
	wss balloon --restore
	[ "$status" = 1 ]
	[[ $err == *"alpha: libvirt does not know it now"* ]]
	[ -z "$(done_uuids)" ]
}

@test "--restore refuses a word that matches two guests; the watchdog uses exact UUIDs" {
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	taken $alpha alpha
	sqlite3 "$VIRT_WSS_HISTORY" "INSERT INTO balloon (uuid, name, time, original_bytes,
		from_bytes, to_bytes, reason, uri)
		VALUES ('$liar', '$alpha', 1, 1073741824, 1073741824, 536870912, 'test', '');"
	wss balloon --restore $alpha
	[ "$status" = 1 ]
	[ "$(wc -l <<<"$err")" = 1 ]
	[[ $err == *"'$alpha' (UUID $liar)"*"'alpha' (UUID $alpha): choose one with --uuid UUID" ]]
	[ -z "$(done_uuids)" ]
	wss balloon --restore --uuid $alpha
	[ "$status" = 0 ]
	[ "$(done_uuids)" = $alpha ]
	wss balloon --restore $alpha $liar
	[ "$status" = 0 ]
	[ "$(done_uuids | sort)" = "$(printf '%s\n' $alpha $liar)" ]
}
