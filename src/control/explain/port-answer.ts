/**
 * PortAnswer: for `api:80`, what is behind it: the containers with the name, and whether something listens on the port there. "Connection
 * refused" is no failure of DNS, and who looks for one in DNS finds none.
 */
import type { Cause } from "../../api/causes.ts";
import { containerCauses } from "../causes/container-causes.ts";
import type { KnownContainer } from "../causes/known-container.ts";
import { hostAndPort } from "../causes/not-names.ts";
import { type Situation, cause } from "../causes/situation.ts";
import type { Listening } from "../situation/ports.ts";
import type { SituationPorts } from "../situation/situations.ts";

const CONTAINERS_MAX = 4;
const PORTS_MAX = 6;

export function portCauses({ containers, inside }: SituationPorts, situation: Situation): Cause[] {
  const { known, name, owner } = situation;
  const asked = hostAndPort(name);
  if (asked === undefined) return [];
  const own = new Set(owner.endpoints.map(({ networkName }) => networkName));
  const near = known.places(asked.host).flatMap(({ container, endpoints }) => {
    const endpoint = endpoints.find(({ networkName }) => own.has(networkName));
    const address = endpoint?.ipv4 ?? endpoint?.ipv6;
    return container.ended === undefined && address !== undefined ? [{ container, address }] : [];
  });
  if (near.length === 0) return containerCauses({ ...situation, name: asked.host });
  return near.slice(0, CONTAINERS_MAX).map(({ container, address }) => {
    const fact = containers.facts.get(container.id);
    const listening = fact === undefined ? undefined : inside.listeningIn?.(fact);
    return portCause(asked, container, address, listening);
  });
}

function portCause(
  { host, port }: { readonly host: string; readonly port: number },
  { name }: KnownContainer,
  address: string,
  listening: readonly Listening[] | undefined,
): Cause {
  const where = `"${host}" is container ${name} (${address})`;
  if (listening === undefined) return cause("resolves-now", `${where}, whose ports are not known`);
  const own = listening.filter((each) => each.port === port);
  if (own.some(({ isLoopback }) => !isLoopback))
    return cause("resolves-now", `${where}, in which something listens on TCP port ${port}`);
  if (own.length > 0) {
    const sentence = `${where}, in which TCP port ${port} is open on 127.0.0.1 alone: it is not DNS that others are refused`;
    return cause("not-listening", sentence, { advice: `have the program in ${name} listen on 0.0.0.0` });
  }
  const others = [...new Set(listening.filter(({ isLoopback }) => !isLoopback).map((each) => each.port))];
  const open = others.slice(0, PORTS_MAX).join(", ");
  const sentence = `${where}, in which nothing listens on TCP port ${port}: it is not DNS that connections are refused`;
  const advice = open === "" ? `start the server in ${name}` : `use a port on which something listens there: ${open}`;
  return cause("not-listening", sentence, { advice });
}
