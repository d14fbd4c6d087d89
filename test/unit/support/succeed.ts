// A directory with other settings that succeeds one, as at a reload.

import { Directory } from "../../../src/container/registry/directory.ts";

export function succeed(current: Directory, configure: (next: Directory) => void): Directory {
  const next = new Directory({ serversMax: 3, ownAddress: "127.0.0.11" });
  configure(next);
  for (const _ of next.catchUp(current));
  next.succeed(current);
  return next;
}
