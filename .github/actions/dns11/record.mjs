import { record } from "./main.mjs";

await record(process.argv[2] ?? "");
