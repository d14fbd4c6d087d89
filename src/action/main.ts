/** The programs of the GitHub Action in one bundle: each of the small files beside it calls one. */
export { record } from "./record.ts";
export { report } from "./report.ts";
export { start } from "./start.ts";
