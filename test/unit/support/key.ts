// Makes the keys that replies are kept by, as a question for an address has them.

import { hashOf } from "../../../src/base/model/label-table.ts";
import { type CacheKey, keyHash } from "../../../src/query/cache/key.ts";
import { TYPE, aName } from "../../support/scripted/builders.ts";

// The list of servers that all containers share.
export const HOST_SCOPE = 2;

export function aKey(text: string, scope = HOST_SCOPE): CacheKey {
  const labels = aName(text).subarray(0, -1);
  const hash = keyHash(hashOf(labels), TYPE.A, 0, scope);
  return { hash, name: labels.toString("latin1"), type: TYPE.A, bits: 0, scope };
}
