import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";

import { procText } from "../../../src/kernel/process.ts";
import { waitFor } from "../../support/rig/wait.ts";

test("of a process that has ended nothing can be read, which is no error", async () => {
  // `sleep` waits for no child, so the one that has ended stays as a zombie, whose files cannot be read.
  const parent = spawn("sh", ["-c", "sleep 100 & echo $!; exec sleep 100"], { stdio: ["ignore", "pipe", "ignore"] });
  try {
    const [said] = (await once(parent.stdout, "data")) as [Buffer];
    const pid = Number(said.toString());
    // The shell would wait for it.
    await waitFor("the shell to be gone", () => procText(`/proc/${parent.pid}/comm`) === "sleep\n" || undefined);
    process.kill(pid, "SIGKILL");
    await waitFor("it to end", () => (procText(`/proc/${pid}/stat`)?.includes(") Z ") === true ? true : undefined));
    assert.equal(procText(`/proc/${pid}/environ`), undefined);
    assert.equal(procText("/proc/0/stat"), undefined);
  } finally {
    parent.kill();
  }
});
