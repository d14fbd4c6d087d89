/**
 * A real etcd of a test: one member or several in a network namespace, each with an address of its own, and a relay
 * through which the test writes keys. The addresses can be cut off from dns11 while the relay still works.
 */
import { spawn } from "node:child_process";
import { request } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { SYSTEM_PATH } from "../program/command.ts";
import { makeFolder } from "../rig/folder.ts";
import { addAddress, inNetns } from "../rig/netns.ts";
import { waitFor } from "../rig/wait.ts";
import { RealServer } from "./real-server.ts";

export interface EtcdOptions {
  readonly members?: number;
  /** The first address is 10.99.SUBNET.1. */
  readonly subnet?: number;
  /** Paths of PEM files: then the addresses speak TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly args?: readonly string[];
}

type Place = { readonly netnsPath: string };

/** One member. It keeps its data while it is killed. */
class EtcdMember {
  readonly endpoint: string;
  readonly address: string;
  readonly #start: () => Promise<RealServer>;
  #server: RealServer | undefined;

  constructor(address: string, endpoint: string, start: () => Promise<RealServer>) {
    this.address = address;
    this.endpoint = endpoint;
    this.#start = start;
  }

  get pid(): number {
    return this.#server?.pid ?? 0;
  }

  async start(): Promise<void> {
    this.#server = await this.#start();
  }

  async kill(): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]();
    this.#server = undefined;
  }
}

const RELAY = fileURLToPath(new URL("relay-main.js", import.meta.url));
/** On a busy machine a member may not run for a second; an election would stop all writes. */
const PATIENCE = ["--heartbeat-interval=300", "--election-timeout=3000"];

export async function startEtcd(place: Place, options: EtcdOptions = {}): Promise<Etcd> {
  const { members: count = 1, subnet = 1, tls, args = [] } = options;
  const folder = makeFolder("etcd");
  const scheme = tls === undefined ? "http" : "https";
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  const address = (number: number): string => `10.99.${subnet}.${number}`;
  const peer = (number: number): string => `http://127.0.0.1:${subnet * 1000 + 400 + number}`;
  const cluster = numbers.map((number) => `m${number}=${peer(number)}`).join(",");
  const members = numbers.map((number) => {
    const endpoint = `${scheme}://${address(number)}:2379`;
    const flags = [
      `--name=m${number}`,
      `--data-dir=${join(folder, `m${number}`)}`,
      `--listen-client-urls=${endpoint},http://127.0.0.1:${subnet * 1000 + 300 + number}`,
      `--advertise-client-urls=${endpoint}`,
      `--listen-peer-urls=${peer(number)}`,
      `--initial-advertise-peer-urls=${peer(number)}`,
      `--initial-cluster=${cluster}`,
      "--logger=zap",
      "--log-outputs=stderr",
      ...(tls === undefined ? [] : [`--cert-file=${tls.cert}`, `--key-file=${tls.key}`]),
      ...PATIENCE,
      ...args,
    ];
    return new EtcdMember(address(number), endpoint, async () => {
      const server = startIn(place, "etcd", flags);
      await server.until(/serving client traffic/);
      return server;
    });
  });
  for (const each of members) await addAddress(place.netnsPath, each.address);
  await Promise.all(members.map(async (each) => await each.start()));
  const sockets = numbers.map((number) => join(folder, `relay${number}`));
  const relays = numbers.map((number) =>
    startIn(place, process.execPath, [RELAY, sockets[number - 1] ?? "", String(subnet * 1000 + 300 + number)]),
  );
  await Promise.all(relays.map(async (each) => await each.until(/relaying/)));
  return new Etcd(members, relays, sockets);
}

/** Ends with the process that started it. */
function startIn({ netnsPath }: Place, command: string, args: readonly string[]): RealServer {
  const child = spawn("setpriv", ["--pdeathsig", "KILL", "--", ...inNetns(netnsPath, command, args)], {
    stdio: ["ignore", "ignore", "pipe"],
    detached: true,
    env: { ...process.env, PATH: SYSTEM_PATH, ETCD_UNSUPPORTED_ARCH: process.arch },
  });
  return new RealServer(child);
}

export interface EtcdReply {
  readonly status: number;
  readonly json: Readonly<Record<string, unknown>>;
}

export class Etcd implements AsyncDisposable {
  readonly members: readonly EtcdMember[];
  readonly #relays: readonly RealServer[];
  readonly #sockets: readonly string[];

  constructor(members: readonly EtcdMember[], relays: readonly RealServer[], sockets: readonly string[]) {
    this.members = members;
    this.#relays = relays;
    this.#sockets = sockets;
  }

  get endpoints(): readonly string[] {
    return this.members.map(({ endpoint }) => endpoint);
  }

  /** A request to a member, by its index. */
  async call(path: string, body: object, { member = 0, token = "" } = {}): Promise<EtcdReply> {
    return await new Promise((resolve, reject) => {
      const outgoing = request(
        {
          socketPath: this.#sockets[member],
          path,
          method: "POST",
          agent: false,
          timeout: 30_000,
          headers: token === "" ? {} : { authorization: token },
        },
        (response) => {
          let text = "";
          response.setEncoding("utf8");
          response.on("data", (chunk: string) => (text += chunk));
          response.on("error", reject);
          response.on("end", () => {
            try {
              // Keeping a lease alive is a stream of one message.
              const json = JSON.parse(text.split("\n")[0] ?? "") as EtcdReply["json"];
              resolve({ status: response.statusCode ?? 0, json });
            } catch (error) {
              reject(error);
            }
          });
        },
      );
      outgoing.on("timeout", () => outgoing.destroy(new Error(`${path}: no reply`)));
      outgoing.on("error", reject);
      outgoing.end(JSON.stringify(body));
    });
  }

  /** Waits until the cluster accepts the write. */
  async put(key: string, value: unknown, more: object = {}): Promise<void> {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    const body = { key: base64(key), value: base64(text), ...more };
    await waitFor(`etcd to store ${key}`, async () => {
      const reply = await this.call("/v3/kv/put", body).catch(() => undefined);
      return reply?.status === 200 ? true : undefined;
    });
  }

  async remove(prefix: string): Promise<void> {
    await this.call("/v3/kv/deleterange", { key: base64(prefix), range_end: base64(`${prefix}\u{7f}`) });
  }

  /** The values below a prefix, by key. */
  async keys(prefix: string): Promise<ReadonlyMap<string, string>> {
    const { json } = await this.call("/v3/kv/range", { key: base64(prefix), range_end: base64(`${prefix}\u{7f}`) });
    const kvs = (json["kvs"] ?? []) as readonly { readonly key: string; readonly value?: string }[];
    return new Map(kvs.map(({ key, value = "" }) => [plain(key), plain(value)]));
  }

  /** Drops the history of all keys. */
  async compact(): Promise<void> {
    const { json } = await this.call("/v3/kv/range", { key: base64("x") });
    const { revision } = json["header"] as { readonly revision: string };
    await this.call("/v3/kv/compaction", { revision, physical: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const each of [...this.members.map(async (member) => await member.kill())]) await each;
    for (const each of this.#relays) await each[Symbol.asyncDispose]();
  }
}

export function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

function plain(text: string): string {
  return Buffer.from(text, "base64").toString();
}
