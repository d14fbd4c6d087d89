/**
 * Owns what KIND does to DNS when a node starts: the script that a container of the tests runs in the place of a KIND
 * image's entrypoint. The steps and their order are KIND's, with the faults that it has: the address is matched as
 * text, nothing is checked or undone, and a ruleset that iptables does not show is not changed. The words are ours.
 */

/**
 * "node": all of it, then on until told to end. "rewrite": only what KIND does to rules and files. "idle": nothing.
 */
export type KindVerb = "node" | "rewrite" | "idle";

/**
 * Below /run, which is empty after each start, so it tells of this start. The folder /kind of a real node would be the
 * machine's own where a namespace plays the node, hence /etc for what outlives a start.
 */
export const KIND_READY = "/run/kind-ready";

const SCRIPT = String.raw`
set -o errexit -o nounset -o pipefail
trap 'exit 0' TERM INT

rule_lines() {
  { "iptables-$1-save"; "ip6tables-$1-save"; } 2>/dev/null | grep -c '^-' || true
}

# An empty view of both is a tie, and a tie is legacy.
mode_of_iptables() {
  if [ "$(rule_lines legacy)" -ge "$(rule_lines nft)" ]; then echo legacy; else echo nft; fi
}

# The first address that the system's resolver gives within five seconds.
address_of() {
  timeout 5 getent "$1" "$2" | awk 'NR == 1 { print $1 }' || true
}

# The third word of the default route is the gateway, as long as there is one such route and it has one.
address_for_pods() {
  local found
  found=$(address_of ahostsv4 host.docker.internal)
  case $found in
    '' | 127.*) ip -4 route show default | cut -d ' ' -f 3 ;;
    *) printf '%s\n' "$found" ;;
  esac
}

rewrite_rules() {
  "iptables-$1-save" | awk -v vip="$2" '
    /-j DNAT --to-destination 127.0.0.11/ && !/--dport/ { sub(/ -j DNAT/, " --dport 53 -j DNAT") }
    { gsub(/-d 127.0.0.11/, "-d " vip); gsub(/--to-source :53/, "--to-source " vip ":53"); print }
    /^-A OUTPUT .*-j DOCKER_OUTPUT/ { sub(/^-A OUTPUT/, "-A PREROUTING"); print }
  ' | "iptables-$1-restore"
}

# In place: the file is mounted.
rewrite_resolv_conf() {
  local text
  cp /etc/resolv.conf /etc/resolv.conf.original
  text=$(awk -v vip="$1" '{ gsub(/127.0.0.11/, vip); print }' /etc/resolv.conf.original)
  if [[ -v KIND_DNS_SEARCH ]]; then
    text=$(grep -v '^search' <<<"$text" || true)
    if [ -n "$KIND_DNS_SEARCH" ]; then text=$(printf 'search %s\n%s' "$KIND_DNS_SEARCH" "$text"); fi
  fi
  printf '%s\n' "$text" >/etc/resolv.conf
}

# A real node changes its certificates and manifests from the old address to the new one; here it is only looked up.
follow_own_address() {
  local family current old
  for family in 4 6; do
    old=/etc/kind-old-ipv$family
    current=$(address_of "ahostsv$family" "$(uname -n)")
    if [ "$family" = 4 ] && [ -s "$old" ] && [ -z "$current" ]; then
      echo "kind: this node had the address $(cat "$old") and has none now" >&2
      exit 1
    fi
    printf '%s' "$current" >"$old"
  done
}

rewrite() {
  local mode vip
  mode=$(mode_of_iptables)
  vip=$(address_for_pods)
  rewrite_rules "$mode" "$vip"
  rewrite_resolv_conf "$vip"
  follow_own_address
  printf '%s %s\n' "$mode" "$vip" >/run/kind-rewritten
}

# What systemd does once it runs, from a file of the node's image.
apply_sysctl() {
  local file=/proc/sys/net/ipv4/conf/all/route_localnet
  if [ ! -w "$file" ]; then mount -o remount,rw /proc/sys; fi
  echo 1 >"$file"
}

case $1 in
  rewrite) rewrite; exit ;;
  node) rewrite; apply_sysctl; mv /run/kind-rewritten ${KIND_READY} ;;
  idle) printf 'nft none\n' >${KIND_READY} ;;
esac
sleep infinity &
wait
`;

export function kindCommand(verb: KindVerb): string[] {
  return ["bash", "-c", SCRIPT, "kind", verb];
}
