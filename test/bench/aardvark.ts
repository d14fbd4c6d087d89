// aardvark-dns, podman's name server, from Debian's package. Its configuration is a folder with a file per network: the
// listen address and the upstream, then a line per container.

import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { SYSTEM_PATH } from "../support/program/command.ts";
import type { Container } from "../support/engine/container.ts";
import { dig } from "../support/client/dig.ts";
import { makeFolder } from "../support/rig/folder.ts";
import { inNetns } from "../support/rig/netns.ts";
import { RealServer } from "../support/servers/real-server.ts";
import { waitFor } from "../support/rig/wait.ts";
import type { Host } from "./questions.ts";

const PROGRAM = ["/usr/lib/podman/aardvark-dns", "/usr/libexec/podman/aardvark-dns"].find((path) => existsSync(path));
// It answers only containers that it knows by address; over loopback the client has this one.
const CLIENT_ADDRESS = "127.0.0.1";

export type AardvarkOptions = {
  readonly address: string;
  readonly port: number;
  readonly upstream: string;
  readonly hosts: readonly Host[];
};

export type Aardvark = { readonly server: RealServer; readonly pid: number };

// Undefined if it is not installed.
export async function startAardvark(client: Container, options: AardvarkOptions): Promise<Aardvark | undefined> {
  if (PROGRAM === undefined) {
    console.error("bench: aardvark-dns is not installed, skipping its rows");
    return undefined;
  }
  const { address, port, upstream, hosts } = options;
  const folder = makeFolder("aardvark");
  const containers = [{ name: "client", address: CLIENT_ADDRESS }, ...hosts];
  const lines = containers.map(
    (host, index) => `${index.toString(16).padStart(64, "a")} ${host.address}  ${host.name}`,
  );
  writeFileSync(join(folder, "n1"), `${[`${address} ${upstream}`, ...lines].join("\n")}\n`);
  // It daemonizes. In a PID namespace whose process 1 dies with us, it dies too.
  const inside = ["sh", "-c", '"$@"; sleep infinity', "sh", PROGRAM, "-c", folder, "-p", String(port), "run"];
  const alone = inNetns(client.netnsPath, "unshare", ["--pid", "--fork", "--kill-child", ...inside]);
  const child = spawn("setpriv", ["--pdeathsig", "KILL", "--", ...alone], {
    stdio: ["ignore", "ignore", "pipe"],
    detached: true,
    env: { ...process.env, PATH: SYSTEM_PATH },
  });
  const server = new RealServer(child);
  try {
    await waitFor("aardvark-dns", async () => {
      const reply = await dig(client, `@${address}`, "-p", String(port), "+time=1", hosts[0]?.name ?? "", "A");
      return reply.answer.length > 0 ? true : undefined;
    });
    return { server, pid: await waitFor("the process of aardvark-dns", () => grandchildNamed(server.pid)) };
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  }
}

function grandchildNamed(pid: number): number | undefined {
  const below = childrenOf(pid).flatMap((child) => [child, ...childrenOf(child)]);
  return below.find((child) => readFileSync(`/proc/${child}/comm`, "utf8").startsWith("aardvark"));
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  return text.split(" ").filter(Boolean).map(Number);
}
