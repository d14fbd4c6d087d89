/**
 * A process that takes over from the dns11 whose keeper listens at its argument, and never serves: that dns11 is paused
 * until this one ends. Prints a line when it is; ends with its input.
 */
import { once } from "node:events";

import { Predecessor } from "../../../src/keeper/predecessor.ts";

const predecessor = await Predecessor.find(process.argv[2] ?? "");
await predecessor?.take();
process.stdout.write("paused\n");
process.stdin.resume();
await once(process.stdin, "end");
process.exit(0);
