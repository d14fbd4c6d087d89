// @ts-check
/**
 * Loaded into a dns11 before its program: counts calls of functions, and writes what was called since the last time whenever a file "take"
 * with a name appears in the folder WAYS.
 */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector";
import { join } from "node:path";

const folder = process.env["WAYS"] ?? "";
const request = join(folder, "take");
const session = new Session();
session.connect();
session.post("Profiler.enable");
session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
setInterval(() => {
  if (!existsSync(request)) return;
  const name = readFileSync(request, "utf8");
  rmSync(request);
  session.post("Profiler.takePreciseCoverage", (error, { result }) => {
    if (error !== null) throw error;
    const called = result
      .filter(({ url }) => url.includes("/dist/cmd/"))
      .map(({ url, functions }) => ({
        url,
        offsets: functions.flatMap(({ ranges: [whole] }) => (whole && whole.count > 0 ? [whole.startOffset] : [])),
      }));
    writeFileSync(join(folder, "part"), JSON.stringify(called));
    renameSync(join(folder, "part"), join(folder, name));
  });
}, 20).unref();
