/**
 * Container without capabilities in which a process holds a lease on one of its own files, such as resolv.conf: whoever
 * opens that file blocks, until the process is killed.
 */
import { waitFor } from "../rig/wait.ts";
import { type Container, runContainer } from "./container.ts";
import type { Engine } from "./engine.ts";
import { insideNode } from "./inside-node.ts";

const PROGRAM = "support/program/file-lease-main.js";

/** On the network n1. `args` are further arguments of `docker run`. */
export async function startLessee(engine: Engine, path: string, args: readonly string[]): Promise<Container> {
  const node = await insideNode(engine);
  const options = { name: "lessee", networks: ["n1"], args: [...args, ...node.args] };
  const lessee = await runContainer(engine, options);
  const script = `echo $$ >/tmp/pid; exec ${node.command(PROGRAM).join(" ")} ${path} >/tmp/lease`;
  await engine.docker("exec", "--detach", "lessee", "sh", "-c", script);
  await waitFor("the lease", async () => {
    const said = await lessee.readFile("/tmp/lease").catch(() => "");
    return said.includes("held") ? true : undefined;
  });
  return lessee;
}

export async function endLease(lessee: Container): Promise<void> {
  const { code, stderr } = await lessee.exec("sh", ["-c", "kill -9 $(cat /tmp/pid)"]);
  if (code !== 0) throw new Error(`kill: ${stderr}`);
}
