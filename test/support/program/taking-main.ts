/**
 * Program that asks the keeper that listens at its argument for a takeover, and prints what comes of it. With another argument it says
 * that it is connected, and asks at the end of its input.
 */
import { once } from "node:events";

import { reasonOf } from "../../../src/base/lib/fault.ts";
import { Predecessor } from "../../../src/keeper/predecessor.ts";

try {
  const predecessor = await Predecessor.find(process.argv[2] ?? "");
  if (process.argv[3] !== undefined) {
    console.log("connected");
    await once(process.stdin.resume(), "end");
  }
  const taken = await predecessor?.take();
  console.log(`took ${taken?.size ?? 0} namespaces`);
} catch (error) {
  console.log(reasonOf(error));
}
