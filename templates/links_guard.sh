#!/bin/sh
# The part of `sparkctl link up|down` that lives on the node, so that a change of the links is undone here even when
# nobody can reach this machine any more. Runs as root. Documented in docs/links.md; called as
#
#   begin TOKEN GUARD_S PATH HOLDER NETDEV,MTU,ADDRESS…   lock, back up, arm the revert timer; changes nothing
#   change TOKEN write|restore    new netplan text from stdin, or the text from before sparkctl; then netplan apply
#   commit TOKEN                  disarm; can still be taken back by `revert`
#   revert TOKEN REASON           put back the former bytes, addresses and MTU
#   close TOKEN up|down           forget what is no longer needed, release the lock
#
# Prints `key=value` lines. Exit codes: 0 done, 20 locked by another, 21 an older change is still armed, 22 too late or
# not ours, 23 netplan refused the file, 24 netplan apply failed, 30 nothing could be prepared, 75 busy.
set -u
umask 077
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

home=/var/lib/sparkctl/links
run=/run/sparkctl
unit=sparkctl-link-revert
boot=/etc/systemd/system/$unit-at-boot.service
wants=/etc/systemd/system/multi-user.target.wants/$unit-at-boot.service
# netplan apply takes about a second; a machine whose RTNL lock is stuck would never return.
netplan_limit=60
# What the lock outlives the guard by: a node that is reverting keeps others away.
lock_margin=15

uptime_s() { cut -d. -f1 /proc/uptime; }
value() { sed -n "s/^$2=//p" "$1" 2>/dev/null | head -n 1; }
say() { printf '%s=%s\n' "$1" "$2"; }
die() { say problem "$2"; exit "$1"; }

write_state() { # STATE STEP REASON: the rest is kept
    printf 'state=%s\nstep=%s\nreason=%s\ntoken=%s\npath=%s\nholder=%s\nsince=%s\nguard_s=%s\n' \
        "$1" "$2" "$3" "$token" "$path" "$holder" "$since" "$guard_s" >"$home/state.new" &&
        sync "$home/state.new" && mv -f "$home/state.new" "$home/state"
}

load_state() {
    path=$(value "$home/state" path) holder=$(value "$home/state" holder)
    since=$(value "$home/state" since) guard_s=$(value "$home/state" guard_s)
    state=$(value "$home/state" state) step=$(value "$home/state" step)
}

enter() { # one at a time on this node; waits for the other, at most $1 seconds
    mkdir -p "$home" "$run" && chmod 0700 "$home" || die 30 "cannot make $home"
    exec 9>"$run/flock" || die 30 "cannot write $run"
    flock -w "$1" 9 || die 75 "another sparkctl step is running here"
}

require() { # STATE…: ours, and in one of these states
    load_state
    [ "$(value "$home/state" token)" = "$token" ] || die 22 "another change has taken over"
    for wanted in "$@"; do [ "$state" = "$wanted" ] && return; done
    die 22 "the change is already $state ($(value "$home/state" reason))"
}

port_state() { # NETDEV -> `netdev mtu up|down address…`
    ip -o link show dev "$1" | awk -v dev="$1" '{
        up = ($3 ~ /[<,]UP[,>]/) ? "up" : "down"
        for (i = 1; i < NF; i++) if ($i == "mtu") mtu = $(i + 1)
        printf "%s %s %s", dev, mtu, up }'
    ip -4 -o addr show dev "$1" | awk '{ printf " %s", $4 }'
    echo
}

snapshot() { # NAME: the file's bytes and how the ports run
    rm -f "$home/$1.yaml" || return 1
    if [ -e "$path" ]; then cp -p -- "$path" "$home/$1.yaml" && sync "$home/$1.yaml" || return 1; fi
    while read -r netdev _; do port_state "$netdev" || return 1; done <"$home/plan.ports" >"$home/$1.ports"
}

put_back() { # NAME: the exact bytes, mode and owner of then, or no file
    if [ -e "$home/$1.yaml" ]; then
        cp -p -- "$home/$1.yaml" "${path%/*}/.sparkctl.$token" && sync "${path%/*}/.sparkctl.$token" &&
            mv -f "${path%/*}/.sparkctl.$token" "$path"
    else
        rm -f "$path"
    fi
}

restore_ports() { # NAME: addresses and MTU of then; networkd leaves both behind on a port it no longer configures
    while read -r netdev mtu up addresses; do
        for ours in $(sed -n "s/^$netdev [0-9]* //p" "$home/plan.ports"); do
            case " $addresses " in
            *" $ours "*) ;;
            *) ip addr del "$ours" dev "$netdev" 2>/dev/null ;;
            esac
        done
        for address in $addresses; do
            tries=10
            until ip -4 -o addr show dev "$netdev" | grep -qF " $address "; do
                tries=$((tries - 1))
                if [ $tries -le 0 ]; then ip addr add "$address" dev "$netdev"; break; fi
                sleep 0.5
            done
        done
        ip link set dev "$netdev" mtu "$mtu"
        [ "$up" = up ] || ip link set dev "$netdev" down
    done <"$home/$1.ports"
}

align_ports() { # a port that netplan did not bring up or left at its old MTU (NetworkManager does that)
    while read -r netdev mtu _; do
        case $(port_state "$netdev") in
        "$netdev $mtu up"*) ;;
        *) ip link set dev "$netdev" mtu "$mtu" up ;;
        esac
    done <"$home/plan.ports"
}

disarm() {
    rm -f "$wants" "$boot"
    [ "${1:-}" = timer ] || systemctl stop "$unit.timer" 2>/dev/null
}

arm() {
    systemctl stop "$unit.timer" 2>/dev/null
    systemctl reset-failed "$unit.service" 2>/dev/null
    # Without AccuracySec systemd may fire a minute late.
    systemd-run --quiet --collect --unit="$unit" --service-type=oneshot --on-active="$guard_s" \
        --timer-property=AccuracySec=100ms /bin/sh "$home/guard-$token.sh" revert "$token" timer || return 1
    # Timers made by systemd-run vanish when the machine restarts, so the guard has a second leg.
    mkdir -p "${wants%/*}" && cat >"$boot" <<UNIT && ln -sf "$boot" "$wants" && sync "$boot"
[Unit]
Description=Put the links back after a sparkctl change that a restart interrupted
After=network.target systemd-networkd.service NetworkManager.service
ConditionPathExists=$home/guard-$token.sh

[Service]
Type=oneshot
ExecStart=/bin/sh $home/guard-$token.sh revert $token restart
UNIT
}

begin() {
    guard_s=$1 path=$2 holder=$3
    shift 3
    enter 20
    # A refused beginning leaves no file behind.
    trap 'rm -f "$home/guard-$token.sh"' EXIT
    if [ -e "$run/lock" ] && [ "$(uptime_s)" -lt "$(value "$run/lock" expires)" ]; then
        cat "$run/lock"
        exit 20
    fi
    if [ "$(value "$home/state" state)" = armed ]; then
        cat "$home/state"
        exit 21
    fi
    since=$(date -u +%Y-%m-%dT%H:%M:%SZ)
    for port in "$@"; do echo "$port" | tr , ' '; done >"$home/plan.ports" || die 30 "no room in $home"
    snapshot last || die 30 "cannot back up $path"
    if [ ! -e "$home/before.ports" ]; then
        snapshot before && echo "$token" >"$home/before.token" || die 30 "cannot back up $path"
    fi
    while read -r netdev _; do # a cable that was moved to other ports since the first time
        grep -q "^$netdev " "$home/before.ports" || port_state "$netdev" >>"$home/before.ports"
    done <"$home/plan.ports"
    arm || { disarm; die 30 "the revert timer cannot be started"; }
    printf 'token=%s\nholder=%s\nsince=%s\nexpires=%s\n' "$token" "$holder" "$since" \
        $(($(uptime_s) + guard_s + lock_margin)) >"$run/lock" && write_state armed begun "" ||
        { disarm; rm -f "$run/lock"; die 30 "no room in $home"; }
    trap - EXIT
    say state armed
}

change() {
    enter 20
    require armed
    staged=${path%/*}/.sparkctl.$token
    write_state armed changed "" || die 30 "no room in $home"
    if [ "$1" = write ]; then
        { cat >"$staged" && chmod 0600 "$staged" && sync "$staged" && mv -f "$staged" "$path"; } ||
            { rm -f "$staged"; die 30 "cannot write $path"; }
    else
        put_back before || die 30 "cannot restore $path"
    fi
    if ! words=$(timeout "$netplan_limit" netplan generate 2>&1); then
        put_back last
        timeout "$netplan_limit" netplan generate >/dev/null 2>&1
        # Nothing ran with the new file, so a revert has nothing to apply.
        write_state armed begun ""
        die 23 "$(echo "$words" | tr '\n' ' ')"
    fi
    flock -u 9
    # In a unit of its own: it goes on when our connection does not survive it.
    systemd-run --quiet --wait --collect --unit=sparkctl-link-apply /bin/sh "$home/guard-$token.sh" apply "$token" "$1" ||
        die 24 "$(tail -n 1 "$home/apply.log")"
    say state applied
}

apply() {
    enter 20
    require armed
    timeout "$netplan_limit" netplan apply >"$home/apply.log" 2>&1 || exit 24
    if [ "$1" = write ]; then align_ports; else restore_ports before; fi
}

commit() {
    enter 20
    require armed
    disarm
    write_state committed changed "" || die 30 "no room in $home"
    say state committed
}

revert() {
    enter 120
    load_state
    if [ "$state" = reverted ] && [ "$(value "$home/state" token)" = "$token" ]; then say state reverted; exit 0; fi
    # Only the controller may take back what was confirmed, when another node could not be.
    case $1 in timer | restart) require armed ;; *) require armed committed ;; esac
    result=reverted
    if [ "$step" = changed ]; then
        put_back last || result=revert-failed
        timeout "$netplan_limit" netplan apply >"$home/apply.log" 2>&1 || result=revert-failed
        restore_ports last
    fi
    if [ "$(cat "$home/before.token" 2>/dev/null)" = "$token" ]; then
        rm -f "$home"/before.*
    fi
    write_state $result "$step" "$1"
    rm -f "$run/lock" "$home/guard-$token.sh"
    disarm "$1"
    say state $result
}

close() {
    enter 20
    require committed
    if [ "$1" = down ]; then
        rm -f "$home"/*
    else
        write_state applied changed ""
        rm -f "$home/before.token" "$home"/last.* "$home"/guard-*.sh
    fi
    rm -f "$run/lock"
    say state closed
}

verb=$1 token=$2
shift 2
case $verb in
begin | change | apply | commit | revert | close) "$verb" "$@" ;;
*) die 2 "no such step: $verb" ;;
esac
