/** Module loaded into dns11 by NODE_OPTIONS: SIGWINCH blocks its event loop for ever, after a last word on stderr. */
import { writeSync } from "node:fs";

process.on("SIGWINCH", () => {
  writeSync(2, "blocked\n");
  for (;;);
});
