/**
 * StrangersWorld: an engine, and an internet with names that a program may need and a stranger who would like to hear from it. The meter
 * is the log of the name server outside.
 */
import { readdirSync } from "node:fs";
import { type Server, createServer } from "node:net";
import { join } from "node:path";

import { dig } from "../client/dig.ts";
import { Internet } from "../rig/internet.ts";
import { addAddress } from "../rig/netns.ts";
import { waitFor } from "../rig/wait.ts";
import { type RealServer, startDnsmasq } from "../servers/real-server.ts";
import { type Engine, startEngine } from "./engine.ts";
import { busyboxWith, ensureImage } from "./image.ts";
import type { Suite } from "./suite.ts";

const EXTENSIONS = `/usr/lib/${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu/xtables`;
/** Of the machine, as that of systemd-resolved. */
const STUB = "127.0.0.53";
const NAME_SERVER = "192.0.2.53";
export const STRANGER = "198.51.100.66";
export const API = "192.0.2.10";
const REGISTRY = "192.0.2.30";
export const AT_FIRST = { "api.example.com": API, "registry.example.org": REGISTRY };

/** Its servers say which address they were asked at. */
export class StrangersWorld implements AsyncDisposable {
  readonly engine: Engine;
  readonly #internet: Internet;
  readonly #web: Server;
  readonly #stub: RealServer;
  #names: RealServer | undefined;
  /** Of the servers before. */
  #log = "";
  #fences = 0;

  private constructor(engine: Engine, internet: Internet, web: Server, stub: RealServer) {
    this.engine = engine;
    this.#internet = internet;
    this.#web = web;
    this.#stub = stub;
  }

  static async begin(suite: Suite): Promise<StrangersWorld> {
    const engine = await startEngine({ suite, resolvConf: `nameserver ${STUB}\n` });
    await engine.enter("sysctl", ["-qw", "net.ipv4.ip_forward=1"]);
    const internet = await Internet.connect(engine.id);
    const web = createServer((connection) => {
      const text = `HTTP/1.0 200 OK\r\n\r\nI am ${connection.localAddress?.replace("::ffff:", "")}\n`;
      connection.on("error", () => undefined).once("data", () => connection.end(text));
    });
    await new Promise<void>((resolve) => internet.within(() => void web.listen(80, resolve)));
    await addAddress(internet.netns.netnsPath, STRANGER);
    const agent = busyboxWith(
      "agent",
      {
        "/usr/bin/dig": "/usr/bin/dig",
        "/usr/sbin/iptables": "/usr/sbin/iptables",
        "/usr/sbin/ipset": "/usr/sbin/ipset",
        ...Object.fromEntries(readdirSync(EXTENSIONS).map((name) => [join(EXTENSIONS, name), join(EXTENSIONS, name)])),
      },
      [],
    );
    await ensureImage(engine, agent);
    const lines = [`server=${NAME_SERVER}`, "cache-size=0"];
    return new StrangersWorld(engine, internet, web, await startDnsmasq(engine, { address: STUB, lines }));
  }

  /** The names that there are from now on, and everything below that of the stranger. */
  async setNames(names: Readonly<Record<string, string>>): Promise<void> {
    this.#log += this.#names?.log ?? "";
    await this.#names?.[Symbol.asyncDispose]();
    const all = { ...names, "tunnel.example.net": STRANGER };
    this.#names = await startDnsmasq(this.#internet.netns, {
      address: NAME_SERVER,
      lines: [
        `listen-address=${STRANGER}`,
        "log-queries",
        // Of these names there is nothing else, and no other name.
        ...Object.entries(all).flatMap(([name, address]) => [`address=/${name}/${address}`, `local=/${name}/`]),
        "address=/#/",
      ],
    });
  }

  /** What the server outside has been asked for below the stranger's name: all that was sent to it before this call. */
  async keys(): Promise<string[]> {
    const fence = `fence-${(this.#fences += 1)}.test`;
    await dig(this.#internet.netns, `@${NAME_SERVER}`, fence);
    const log = await waitFor("the server's log", () =>
      this.#names?.log.includes(fence) === true ? this.#names.log : undefined,
    );
    const asked = `${this.#log}${log}`.matchAll(/query\[\w+\] (\S+)\.tunnel\.example\.net from/g);
    return [...asked].map(([, key = ""]) => key);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#names?.[Symbol.asyncDispose]();
    await this.#stub[Symbol.asyncDispose]();
    await new Promise((resolve) => this.#web.close(resolve));
    await this.#internet[Symbol.asyncDispose]();
    await this.engine[Symbol.asyncDispose]();
  }
}
