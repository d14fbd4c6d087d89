/**
 * GivenHosts: entries of /etc/hosts that a container was given (--add-host, extra_hosts). Programs read them before they query, so a stale
 * one leads past the container that has the name.
 */
import type { Cause } from "../../api/causes.ts";
import { bareName } from "../../base/dns/name.ts";
import { definitionOf, recreateCommand, serviceChange } from "./fixes.ts";
import type { KnownContainer } from "./known-container.ts";
import { cause } from "./situation.ts";

const KEY = "extra_hosts";

/** `when` says when programs read the entry. */
export function givenHostCause(
  client: KnownContainer,
  name: string,
  addresses: readonly string[],
  when = "they read it before they query",
): Cause {
  const sentence = `programs in ${client.name} get ${addresses.join(", ")}: /etc/hosts has "${name}" (--add-host, extra_hosts), and ${when}`;
  const advice = `remove "${name}" from it, if it is not meant`;
  return cause("hosts-file", sentence, { advice, lastingFix: lastingChange(client, name) });
}

function lastingChange(client: KnownContainer, name: string): Cause["lastingFix"] {
  const text = definitionOf(client);
  const place = text?.extraHosts.get(bareName(name));
  if (text !== undefined && place === undefined)
    return serviceChange(client, KEY, `"${name}" is no longer there: create it again`, recreateCommand(client));
  const change = serviceChange(client, KEY, `remove "${name}", if it is not meant`);
  return change === null || place === undefined
    ? change
    : { ...change, file: place.file, service: place.service, key: `services.${place.service}.${KEY}` };
}
