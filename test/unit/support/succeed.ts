// A directory with other settings that succeeds one, as at a reload.

import type { NameSettings } from "../../../src/container/names/source/name-settings.ts";
import { Directory } from "../../../src/container/registry/directory.ts";

export function succeed(current: Directory, names: Partial<NameSettings> = {}): Directory {
  const next = new Directory({ serversMax: 3, ownAddress: "127.0.0.11", names });
  for (const _ of next.catchUp(current));
  next.succeed(current);
  return next;
}
