/**
 * NotNames: what programs look up that can never be the name of a container, because it is a URL, has a port, or is a name
 * that only Docker Desktop knows.
 */
import { bareName } from "../../base/dns/name.ts";
import type { Cause } from "../../api/causes.ts";
import { serviceChange } from "./fixes.ts";
import { type Situation, cause } from "./situation.ts";

/** The scheme and the user before the host; the port and the path after it. */
const URL = /^(?:([a-z][a-z0-9+.-]*):\/+)?(?:[^/@]*@)?([^/:@]+)(?::(\d{1,5}))?(?:\/.*)?$/i;
const MACHINE_NAMES = new Set(["host.docker.internal", "gateway.docker.internal"]);

/** The host and the port of a name such as `db:5432`; undefined for a name without a port. */
export function hostAndPort(name: string): { readonly host: string; readonly port: number } | undefined {
  const [, , host, port] = URL.exec(name.replaceAll("\\", "").replace(/\.$/, "")) ?? [];
  return host === undefined || port === undefined ? undefined : { host: host.toLowerCase(), port: Number(port) };
}

/** Explains names such as `http://db`, `db:5432` or `postgres://user@db:5432/shop`. */
export function notNameCauses({ name, owner, known }: Situation): Cause[] {
  const text = name.replaceAll("\\", "").replace(/\.$/, "");
  if (!/[:/]/.test(text)) return [];
  const [, scheme, host, port] = URL.exec(text) ?? [];
  if (host === undefined || (scheme === undefined && port === undefined)) return [];
  const what = scheme === undefined ? "a name with a port" : "a URL";
  const isKnown = known.places(host.toLowerCase()).length > 0;
  const advice =
    `give ${owner.name} "${host}" where it expects a host` +
    (port === undefined ? "" : `, and ${port} where it expects a port`);
  return [cause("not-a-name", `"${name}" is ${what}, and was looked up as a name`, { advice, isBreaking: isKnown })];
}

/** What settings leave in a name, as it is written where an answer is shown: bytes by their numbers. */
const ODD: readonly (readonly [RegExp, string])[] = [
  [/\$\{?\w+\}?/, "a variable that nobody has put a value for"],
  [/\\013/, "a carriage return, as at the end of a line that Windows has written"],
  [/\\010/, "a line feed"],
  [/\\009/, "a tab"],
  [/\\032| /, "a blank"],
  [/["']/, "a quotation mark, which is part of the value there"],
  [/\\\d{3}/, "a character that no name of a container has"],
];

/** Explains names such as `"db"`, `db\r` or `${DB_HOST}`. */
export function oddCharacterCauses({ name, owner, known }: Situation): Cause[] {
  const found = ODD.find(([pattern]) => pattern.test(name));
  if (found === undefined) return [];
  const [pattern, what] = found;
  const [text = ""] = pattern.exec(name) ?? [];
  const meant = bareName(
    name
      .replaceAll(/\\\d{3}/g, " ")
      .replaceAll(/[\\"']/g, "")
      .trim(),
  );
  const isKnown = known.places(meant).length > 0;
  const sentence = `"${name}" has ${what} (${text})`;
  const advice = text.startsWith("$")
    ? `set ${text.replaceAll(/[{}$]/g, "")} where ${owner.name} is given it, or write the name itself`
    : `take it out where ${owner.name} is given the name${isKnown ? ` "${meant}"` : ""}: its environment, arguments or settings`;
  return [cause("not-a-name", sentence, { advice, isBreaking: isKnown || text.startsWith("$") })];
}

/** What people put after the name of a service: domains of other tools. */
const SUFFIXES = new Set(["local", "docker", "localdomain", "internal", "lan", "home", "localhost", "compose"]);

/** Explains names such as `api.local`, or `api.front` by the network's key in the Compose file. */
export function suffixCauses({ name, owner, known }: Situation): Cause[] {
  const [first = "", suffix = "", ...more] = bareName(name).split(".");
  if (suffix === "" || more.length > 0) return [];
  const own = new Set(owner.endpoints.map(({ networkName }) => networkName));
  const isThere = known
    .places(first)
    .some(
      ({ container, endpoints }) =>
        container.ended === undefined && endpoints.some((each) => own.has(each.networkName)),
    );
  const network = `${owner.compose?.project ?? ""}_${suffix}`.toLowerCase();
  const isNetwork = [...own].some((each) => each.toLowerCase() === network);
  if (!isThere || !(SUFFIXES.has(suffix) || isNetwork)) return [];
  const why = isNetwork ? `; with its network it is "${first}.${network}"` : "";
  const sentence = `no container has the name "${name}": "${first}" is the name on the networks of ${owner.name}${why}`;
  const advice = `change the name to "${first}" where ${owner.name} is given it: its environment, arguments or settings`;
  return [cause("similar-name", sentence, { advice, isBreaking: true })];
}

/** A name for the machine: Docker Desktop answers it, and Docker on Linux does not. */
export function hostGatewayCauses({ name, owner }: Situation): Cause[] {
  const bare = bareName(name);
  if (!MACHINE_NAMES.has(bare)) return [];
  const entry = `${bare}:host-gateway`;
  const sentence = `"${name}" is the machine itself in Docker Desktop only; on Linux, ${owner.name} has to be given it`;
  const lastingFix = serviceChange(owner, "extra_hosts", `add "${entry}"`);
  if (lastingFix !== null) return [cause("host-gateway", sentence, { lastingFix, isBreaking: true })];
  const advice = `create ${owner.name} again with --add-host ${entry}`;
  return [cause("host-gateway", sentence, { advice, isBreaking: true })];
}
