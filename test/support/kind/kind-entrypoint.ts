/**
 * Simulation of a KIND node's entrypoint: what KIND does to DNS when a node starts. The steps and their order are
 * KIND's, with its faults: it matches the address as text, checks and undoes nothing, and does not change a ruleset
 * that iptables does not show. The script itself is our own.
 */

/** "node": all steps, then sleep until stopped. "boot": all steps, then systemd. "k3d": as k3d's nodes do.
 * "rewrite": only the changes to rules and files. "idle": nothing. */
export type KindVerb = "node" | "boot" | "k3d" | "rewrite" | "idle";

/**
 * Below /run, which is empty after each start, so it describes the current start. The folder /kind of a real node would
 * be the machine's own where a namespace simulates the node, so state that outlives a start is in /etc.
 */
export const KIND_READY = "/run/kind-ready";

const SCRIPT = String.raw`
set -o errexit -o nounset -o pipefail
trap 'exit 0' TERM INT

rule_lines() {
  { "iptables-$1-save"; "ip6tables-$1-save"; } 2>/dev/null | grep -c '^-' || true
}

# A tie, also of two empty rulesets, means legacy.
mode_of_iptables() {
  if [ "$(rule_lines legacy)" -ge "$(rule_lines nft)" ]; then echo legacy; else echo nft; fi
}

# The first address that the system resolver returns within five seconds.
address_of() {
  timeout 5 getent "$1" "$2" | awk 'NR == 1 { print $1 }' || true
}

# The third word of the default route is the gateway, if there is exactly one such route and it has a gateway.
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

# In place: the file is a mount point.
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

# A real node changes its certificates and manifests from the old address to the new one; this only looks it up.
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

# systemd sets this from a file of the node's image.
apply_sysctl() {
  local file=/proc/sys/net/ipv4/conf/all/route_localnet
  if [ ! -w "$file" ]; then mount -o remount,rw /proc/sys; fi
  echo 1 >"$file"
}

# A node image names the release of Kubernetes in it; here is none. Its units that a container has no use for are masked.
# Where the machine has control groups of version 1, systemd gets those of version 2, which it needs.
boot() {
  mkdir -p /kind/manifests /etc/systemd/system
  echo v0.0.0 >/kind/version
  tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id
  for unit in firstboot networkd networkd-wait-online networkd-persistent-storage logind journal-catalog-update; do
    ln -sf /dev/null "/etc/systemd/system/systemd-$unit.service"
  done
  for unit in ldconfig console-getty dbus; do ln -sf /dev/null "/etc/systemd/system/$unit.service"; done
  if [ "$(stat -fc %T /sys/fs/cgroup)" != cgroup2fs ]; then
    umount -R /sys/fs/cgroup
    mount -t cgroup2 none /sys/fs/cgroup
  fi
  mv /run/kind-rewritten ${KIND_READY}
  exec /usr/lib/systemd/systemd --show-status=1
}

# k3d knows the gateway when it makes a node, looks nothing up, and leaves route_localnet to kube-proxy.
rewrite_as_k3d() {
  local mode gateway
  mode=$(mode_of_iptables)
  gateway=$(ip -4 route show default | cut -d ' ' -f 3)
  rewrite_rules "$mode" "$gateway"
  rewrite_resolv_conf "$gateway"
  printf '%s %s\n' "$mode" "$gateway" >/run/kind-rewritten
}

case $1 in
  k3d) rewrite_as_k3d; mv /run/kind-rewritten ${KIND_READY} ;;
  boot) rewrite; boot ;;
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
