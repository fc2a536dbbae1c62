# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# bash completion for virt-wss(1), as printed by "virt-wss completion bash", which adds the commands.

# The names or the UUIDs of all domains of the connection.
_virt_wss_domains() { # COLUMN [-c URI]...
	virt-wss "${@:2}" list --all --timeout 2s --output csv --columns "$1" 2>/dev/null |
		sed -e 1d -e 's/\r$//' -e 's/^"\(.*\)"$/\1/' -e 's/""/"/g'
}

# The words of a list, one a line; of a list with commas, what continues the last word.
_virt_wss_replies() { # KIND CURRENT LISTED COLUMN [-c URI]...
	local kind=$1 current=$2 listed=$3 before='' word
	case $kind in
	domains) listed=$(_virt_wss_domains "${@:4}") ;;
	files) compgen -f -- "$current"; return ;;
	columns)
		[[ $current != *,* ]] || before=${current%,*},
		[[ $current != -* ]] || before=-
		current=${current#"$before"} ;;
	esac
	[[ $kind == domains ]] || listed=${listed// /$'\n'}
	# Not by compgen -W, which would run what the name of a domain says.
	while IFS= read -r word; do
		[[ -z $word || $word != "$current"* ]] || printf '%s\n' "$before$word"
	done <<<"$listed"
}

# The words of a line, without their quotes, the last of which is being typed; the quote that it has open.
_virt_wss_split() { # LINE -> words, quote
	local char i word='' begun=''
	words=() quote=''
	for ((i = 0; i < ${#1}; i++)); do
		char=${1:i:1}
		if [[ -n $quote && $char == "$quote" ]]; then
			quote=''
		elif [[ $char == \\ && ($quote == '' || ($quote == '"' && ${1:i+1:1} == [\"\\\$\`])) ]]; then
			((++i))
			word+=${1:i:1} begun=1
		elif [[ -n $quote ]]; then
			word+=$char
		elif [[ $char == [\'\"] ]]; then
			quote=$char begun=1
		elif [[ $char != [[:space:]] ]]; then
			word+=$char begun=1
		elif [[ -n $begun ]]; then
			words+=("$word")
			word='' begun=''
		fi
	done
	words+=("$word")
}

# The names of domains as they stand on a line, behind the quote that is open there.
_virt_wss_quote() { # QUOTE NAME -> quoted
	quoted=$2
	case $1 in
	'') printf -v quoted %q "$2" ;;
	\")
		quoted=${2//\\/\\\\} quoted=${quoted//\"/\\\"}
		quoted=${quoted//\$/\\\$} quoted=${quoted//\`/\\\`} ;;
	\') quoted=${2//\'/\'\\\'\'} ;;
	esac
}

_virt_wss() {
	local line=${COMP_LINE:0:COMP_POINT} words i word command='' option='' column=domain seen=0
	local takes listed valued flags connection=() current quote quoted prefix
	_virt_wss_split "$line"
	current=${words[${#words[@]} - 1]}
	_virt_wss_command ''
	for ((i = 1; i < ${#words[@]} - 1; i++)); do
		word=${words[i]}
		case $word in
		--uuid) column=uuid ;;
		--connect=*) connection=(-c "${word#*=}") ;;
		-*)
			if [[ " $valued " == *" $word "* ]]; then
				option=$word
				((++i < ${#words[@]} - 1)) || break
				option=''
				[[ $word != --connect && ($word != -c || $valued != *' -c --connect '*) ]] || connection=(-c "${words[i]}")
			fi ;;
		*)
			if [[ -n $command ]]; then
				seen=$((seen + 1))
			else
				command=$word
				_virt_wss_command "$command" || return 0
			fi ;;
		esac
	done
	if [[ -z $option && $current == --*=* ]]; then
		option=${current%%=*} current=${current#*=}
	fi
	if [[ -n $option ]]; then
		_virt_wss_value "$command" "$option"
	elif [[ $current == -* ]]; then
		takes=listed listed="${valued# }$flags"
	elif [[ $takes == commands ]]; then
		# The program adds this variable.
		# shellcheck disable=SC2154
		takes=listed listed=$_virt_wss_commands
	elif [[ $takes == listed && $seen -gt 0 ]]; then
		takes=domains
	fi
	[[ $takes != files ]] || compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(_virt_wss_replies "$takes" "$current" "$listed" "$column" \
		"${connection[@]}")
	# bash replaces only what is behind the last colon that no quote hides.
	prefix=''
	[[ -n $quote || $current != *:* || $COMP_WORDBREAKS != *:* ]] || prefix=${current%"${current##*:}"}
	for i in "${!COMPREPLY[@]}"; do
		COMPREPLY[i]=${COMPREPLY[i]#"$prefix"}
		[[ $takes == domains ]] || continue
		_virt_wss_quote "$quote" "${COMPREPLY[i]}"
		COMPREPLY[i]=$quoted
	done
}

complete -F _virt_wss virt-wss
