/**
 * Fixes: what to do about a cause, as a command and in the words of a Compose file. Names in a command are quoted for a
 * shell, because the reader copies it.
 */
import type { Cause, LastingFix } from "../../api/causes.ts";
import type { KnownContainer } from "./known-container.ts";

const PLAIN_WORD = /^[\w@%+=:,./-]+$/;

/** A command line of these words. */
export function commandOf(...words: readonly string[]): string {
  return words.map((word) => (PLAIN_WORD.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}

/** Adds a network to a client's service. A network of another project is external to this one. */
export function joinNetwork({ compose }: KnownContainer, network: string): LastingFix | null {
  if (compose === undefined) return null;
  const { project, service, file } = compose;
  const key = `services.${service}.networks`;
  const isOwn = network.startsWith(`${project}_`);
  const change = isOwn
    ? `add "${network.slice(project.length + 1)}"`
    : `add "${network}", and declare networks.${network} with "external: true"`;
  return { file, service, key, change };
}

/** One change of a service of a container. */
export function serviceChange({ compose }: KnownContainer, key: string, change: string): LastingFix | null {
  if (compose === undefined) return null;
  const { service, file } = compose;
  return { file, service, key: `services.${service}.${key}`, change };
}

/** A cause with its fix in one line. */
export function causeText({ sentence, fix }: Cause): string {
  return fix === null ? sentence : `${sentence}; to fix it: ${fix}`;
}
