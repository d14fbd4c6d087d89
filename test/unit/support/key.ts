// Builder of cache keys for address questions.

import { hashOf } from "../../../src/base/model/label-table.ts";
import { type CacheKey, keyHash } from "../../../src/query/cache/entry.ts";
import { TYPE, aName } from "../../support/scripted/builders.ts";

// Scope of the server list that all containers share.
export const HOST_SCOPE = 2;

export function aKey(text: string, scope = HOST_SCOPE): CacheKey {
  const labels = aName(text).subarray(0, -1);
  const hash = keyHash(hashOf(labels), TYPE.A, 0, scope);
  return { hash, name: labels.toString("latin1"), type: TYPE.A, bits: 0, scope };
}
