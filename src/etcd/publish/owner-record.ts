/**
 * OwnerRecord: the key that says which dns11 publishes as a machine. Every write has the condition that this key is as its
 * writer has left it, so two of them never mix, and whoever was replaced notices.
 */
import type { StoredKey } from "../../base/model/stored-key.ts";
import { encoded, listOf, objectOf, readPage, textOf } from "../messages.ts";
import type { Calls } from "./lease.ts";

interface Owner {
  /** Which engine's dns11. */
  readonly instance: string;
  /** Which run of it. */
  readonly run: string;
}

/** The key as it is in etcd. */
export interface StoredOwner extends Owner {
  readonly lease: string | undefined;
  readonly revision: number;
}

/** Undefined while there is none. */
export async function readOwner(gateway: Calls, key: string, signal: AbortSignal): Promise<StoredOwner | undefined> {
  return ownerIn(await gateway.call("/v3/kv/range", { key: encoded(key) }, signal));
}

/** In the reply to a transaction that failed: the key as it is. */
export function ownerOfFailure(reply: unknown): StoredOwner | undefined {
  const [first] = listOf(objectOf(reply)["responses"]);
  return ownerIn(objectOf(first)["response_range"]);
}

/** The key is as it was left at this revision; 0: there is none. */
export function unchanged(key: string, revision: number): object {
  return { target: "MOD", key: encoded(key), result: "EQUAL", mod_revision: String(revision) };
}

function ownerIn(reply: unknown): StoredOwner | undefined {
  const [stored] = readPage(reply).keys;
  return stored && { ...readValue(stored), lease: stored.lease, revision: stored.revision ?? 0 };
}

/** Of what is not valid, the owner is unknown. */
function readValue({ value }: StoredKey): Owner {
  try {
    const json = objectOf(JSON.parse(value?.toString() ?? ""));
    return { instance: textOf(json["instance"]), run: textOf(json["run"]) };
  } catch {
    return { instance: "", run: "" };
  }
}
