// Program that asks the keeper that listens at its argument for a takeover, and prints what comes of it.

import { reasonOf } from "../../../src/base/lib/fault.ts";
import { Predecessor } from "../../../src/keeper/predecessor.ts";

try {
  const predecessor = await Predecessor.find(process.argv[2] ?? "");
  const taken = await predecessor?.take();
  console.log(`took ${taken?.size ?? 0} namespaces`);
} catch (error) {
  console.log(reasonOf(error));
}
