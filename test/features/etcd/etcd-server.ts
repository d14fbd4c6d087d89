/**
 * A real etcd of a test: one member or several in a network namespace, each with an address of its own, and a Unix socket
 * through which the test writes keys. The addresses can be cut off from dns11 while the sockets still work.
 */
import { spawn } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";

import { SYSTEM_PATH, check } from "../../support/program/command.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { addAddress, inNetns } from "../../support/rig/netns.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { RealServer } from "../../support/servers/real-server.ts";

export interface EtcdOptions {
  readonly members?: number;
  /** The first address is 10.99.SUBNET.1. */
  readonly subnet?: number;
  /** Paths of PEM files: then the addresses speak TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly args?: readonly string[];
  /** A namespace for each member, which has its address already; their peers use it, too, so that a test can part them. */
  readonly apart?: readonly Place[];
}

/** Of members that are apart, for the others. */
const PEER_PORT = 2380;

type Place = { readonly netnsPath: string };

interface MemberPlace {
  readonly address: string;
  readonly endpoint: string;
  /** The path of its Unix socket, which needs no certificate. */
  readonly socket: string;
  readonly place: Place;
}

/** One member. It keeps its data while it is killed. */
class EtcdMember {
  readonly endpoint: string;
  readonly address: string;
  readonly socket: string;
  readonly #place: Place;
  readonly #start: () => Promise<RealServer>;
  #server: RealServer | undefined;

  constructor({ address, endpoint, socket, place }: MemberPlace, start: () => Promise<RealServer>) {
    this.address = address;
    this.endpoint = endpoint;
    this.socket = socket;
    this.#place = place;
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

  /** It says nothing and loses nothing until `resume`. */
  pause(): void {
    process.kill(this.pid, "SIGSTOP");
  }

  resume(): void {
    process.kill(this.pid, "SIGCONT");
  }

  /** From the other members, and not from who queries it. It has a namespace of its own. */
  async part(): Promise<void> {
    const chains = ["input", "output"].map(
      (hook) =>
        `chain ${hook} { type filter hook ${hook} priority 0; tcp dport ${PEER_PORT} drop; tcp sport ${PEER_PORT} drop; };`,
    );
    await this.#nft(`table inet parted { ${chains.join(" ")} }`);
  }

  async rejoin(): Promise<void> {
    await this.#nft("delete table inet parted");
  }

  async #nft(rules: string): Promise<void> {
    const [command = "", ...args] = inNetns(this.#place.netnsPath, "nft", [rules]);
    await check(command, args);
  }
}

/** In the folder of a member, which takes a host and a port for the name of the file. */
const SOCKET = "client:1";
/** On a busy machine a member may not run for a second; an election would stop all writes. */
const PATIENCE = ["--heartbeat-interval=300", "--election-timeout=3000"];

export async function startEtcd(place: Place, options: EtcdOptions = {}): Promise<Etcd> {
  const { members: count = 1, subnet = 1, tls, args = [], apart } = options;
  const folder = makeFolder("etcd");
  const scheme = tls === undefined ? "http" : "https";
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  const address = (number: number): string => `10.99.${subnet}.${number}`;
  const peer = (number: number): string =>
    apart === undefined ? `http://127.0.0.1:${subnet * 1000 + 400 + number}` : `http://${address(number)}:${PEER_PORT}`;
  const cluster = numbers.map((number) => `m${number}=${peer(number)}`).join(",");
  const members = numbers.map((number) => {
    const endpoint = `${scheme}://${address(number)}:2379`;
    const cwd = join(folder, `m${number}`);
    mkdirSync(cwd);
    const flags = [
      `--name=m${number}`,
      `--data-dir=${join(cwd, "data")}`,
      `--listen-client-urls=${endpoint},unix://${SOCKET}`,
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
    const memberPlace = apart?.[number - 1] ?? place;
    return new EtcdMember(
      { address: address(number), endpoint, socket: join(cwd, SOCKET), place: memberPlace },
      async () => {
        // It does not listen where there is one of before.
        rmSync(join(cwd, SOCKET), { force: true });
        const server = startIn(memberPlace, "etcd", flags, cwd);
        await server.until(/serving client traffic/);
        return server;
      },
    );
  });
  if (apart === undefined) for (const each of members) await addAddress(place.netnsPath, each.address);
  await Promise.all(members.map(async (each) => await each.start()));
  return new Etcd(members);
}

/** Ends with the process that started it. */
export function startIn({ netnsPath }: Place, command: string, args: readonly string[], cwd?: string): RealServer {
  const child = spawn("setpriv", ["--pdeathsig", "KILL", "--", ...inNetns(netnsPath, command, args)], {
    stdio: ["ignore", "ignore", "pipe"],
    detached: true,
    cwd,
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

  constructor(members: readonly EtcdMember[]) {
    this.members = members;
  }

  get endpoints(): readonly string[] {
    return this.members.map(({ endpoint }) => endpoint);
  }

  /** A request to a member, by its index. */
  async call(path: string, body: object, { member = 0, token = "" } = {}): Promise<EtcdReply> {
    return await new Promise((resolve, reject) => {
      const outgoing = request(
        {
          socketPath: this.members[member]?.socket,
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
    await Promise.all(this.members.map(async (member) => await member.kill()));
  }
}

export function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

function plain(text: string): string {
  return Buffer.from(text, "base64").toString();
}
