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
