import { report } from "./main.mjs";

await report();
