import { start } from "./main.mjs";

await start();
