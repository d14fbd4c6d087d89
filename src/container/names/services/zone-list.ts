/**
 * ZoneList: the names in a zone that one container resolves, for `dns11 names`. Those of single addresses are left out.
 */
import type { OwnName } from "../../../base/model/visible-names.ts";
import type { Addresses, MemberSet, ZoneMember } from "./member.ts";
import type { ReachableAddresses } from "./reachable-addresses.ts";
import type { DnsZone } from "../source/dns-zone.ts";

/** One service after the other, so that the reader can stop, or let other work run. */
export function* namesIn(zone: DnsZone, members: MemberSet, reachable: ReachableAddresses): Iterable<OwnName> {
  for (const service of members.services()) {
    const visible = service.filter((each) => reachable.sees(each));
    const ready = visible.filter(({ isReady }) => isReady);
    const [one] = visible;
    if (one === undefined) continue;
    const place = `${one.service}.${one.project}`;
    const list = (prefix: string, holders: readonly ZoneMember[], of: (each: ZoneMember) => Addresses): OwnName => ({
      name: `${prefix}.${zone.name}`,
      source: `zone ${zone.name}${machinesText(holders)}`,
      holders: holders.filter(({ remote }) => remote === undefined).map(({ id }) => id),
      ...joined(holders.map((each) => of(each))),
    });
    const first = (each: ZoneMember): Addresses => reachable.first(each);
    if (ready.length > 0) yield list(`${place}.svc`, ready, first);
    yield list(`${place}.endpoints`, visible, (each) => reachable.all(each));
    for (const host of new Set(ready.flatMap(({ hosts }) => hosts)))
      yield list(
        `${host}.${place}.svc`,
        ready.filter(({ hosts }) => hosts.includes(host)),
        first,
      );
    for (const port of new Set(ready.flatMap(portNames)))
      yield list(
        `${port}.${place}.svc`,
        ready.filter((each) => portNames(each).includes(port)),
        () => NO_ADDRESSES,
      );
  }
}

/** The other machines that have some of them. */
function machinesText(members: readonly ZoneMember[]): string {
  const machines = new Set(members.flatMap(({ remote }) => remote?.machine ?? []));
  const [first] = machines;
  if (first === undefined) return "";
  return machines.size === 1 ? `, machine ${first}` : `, ${machines.size} machines`;
}

const NO_ADDRESSES: Addresses = { v4: [], v6: [] };

function portNames({ ports }: ZoneMember): string[] {
  return ports.map(({ name, protocol }) => `_${name}._${protocol}`);
}

function joined(all: readonly Addresses[]): Pick<OwnName, "v4" | "v6"> {
  return { v4: Buffer.concat(all.flatMap(({ v4 }) => v4)), v6: Buffer.concat(all.flatMap(({ v6 }) => v6)) };
}
