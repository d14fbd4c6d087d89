/**
 * SafeWildcard: where a wildcard stands for names of one owner. Below a domain in which strangers have names, at whatever depth, it
 * could allow theirs, so the names stay as they are.
 */
import { readPattern } from "../../base/model/name-pattern.ts";
import { sharedBelow } from "../model/shared-domains.ts";

/** A domain like co.uk, of which the list of shared domains does not have all. */
const REGISTRY = /^(?:ac|co|com|edu|gob|gov|gv|info|ltd|mil|name|ne|net|nom|or|org|plc|sch)\.[a-z]{2}$/;

/** The wildcard for the names right below a domain; undefined where strangers may have some. */
export function safeWildcard(domain: string): string | undefined {
  const labels = domain.split(".");
  if (labels.length < 2 || REGISTRY.test(domain)) return undefined;
  for (let at = 0; at < labels.length - 1; at++) {
    if (sharedBelow(readPattern(`*.${labels.slice(at).join(".")}`)) !== undefined) return undefined;
  }
  return `*.${domain}`;
}
