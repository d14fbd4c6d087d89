// Writes the page of scenarios: node dist/test/forwarder/scoreboard-main.js

import { writeFileSync } from "node:fs";

import { DOCUMENT, scoreboard } from "./scoreboard.ts";

writeFileSync(DOCUMENT, scoreboard());
