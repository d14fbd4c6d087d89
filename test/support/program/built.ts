/** Path of the compiled program, for tests and helpers that start it themselves. */
import { fileURLToPath } from "node:url";

export const PROGRAM = fileURLToPath(new URL("../../../cmd/dns11.js", import.meta.url));
