/**
 * Attaches a program to lo of the namespace that it runs in, before all others, that lets every packet pass and ends the
 * chain there, as a program for security or observation may. Prints a line when it is attached; ends with its input.
 */
import { once } from "node:events";

import { attachToIngress, loadProgram } from "../../../src/kernel/bpf.ts";

const LOOPBACK_INDEX = 1;
// r0 = TCX_PASS; exit
const PASS = Buffer.from("b7000000000000009500000000000000", "hex");

attachToIngress(loadProgram("other", PASS, "GPL"), LOOPBACK_INDEX);
process.stdout.write("attached\n");
process.stdin.resume();
await once(process.stdin, "end");
