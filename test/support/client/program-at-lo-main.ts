/**
 * Attaches a program to lo of the namespace that it runs in, before all others, that lets every packet pass and ends the
 * chain there, as a program for security or observation may. Prints a line when it is attached; ends with its input.
 */
import { once } from "node:events";

import { ENDS_CHAIN, attachOther } from "../packets/other-program.ts";

attachOther(ENDS_CHAIN);
process.stdout.write("attached\n");
process.stdin.resume();
await once(process.stdin, "end");
