// Siege: an engine with a container that attacks from behind a policy, a neighbour on its network, and an internet. The meter is the
// log of the name server there and a capture of what arrives, never dns11's own word. Whatever an attack sends bears a mark.
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { LISTENER_ADDRESSES } from "../../src/base/model/listener-addresses.ts";
import { scopeOf } from "../../src/kernel/libc.ts";
import { NamespaceRunner } from "../../src/container/namespace/namespace-runner.ts";
import { dig } from "../support/client/dig.ts";
import { type Container, type ContainerOptions, createNetwork, runContainer } from "../support/engine/container.ts";
import { type DockerHost, EngineAtSocket } from "../support/engine/docker-host.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import type { Suite } from "../support/engine/suite.ts";
import { PacketSocket } from "../support/packets/frames.ts";
import { type HostileParts, type LinkEnd, MARK } from "../support/packets/hostile-frames.ts";
import { check, stdoutOf } from "../support/program/command.ts";
import { type Dns11, replaceDns11, startDns11 } from "../support/program/dns11.ts";
import { GoingCommand } from "../support/program/going-command.ts";
import { makeFolder } from "../support/rig/folder.ts";
import { Internet, connectTo } from "../support/rig/internet.ts";
import { addAddress } from "../support/rig/netns.ts";
import { waitFor } from "../support/rig/wait.ts";
import { Greeters } from "../support/servers/greeters.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

export const NAME_SERVER = "192.0.2.53";
// Of these names the policy allows all, of their addresses it opens port 443.
export const ALLOWED = {
  name: "a1.ok.test",
  address: "192.0.2.1",
  address6: "2001:db8::1",
  below: "good.ok.test",
} as const;
// No name of the name server's has it.
export const DENIED = { address: "198.51.100.200", address6: "2001:db8:1::200", port: 443 } as const;
// Of the machine itself.
export const METADATA = "169.254.169.254";
// Where a packet of the container may go to.
const OPEN = new Set([
  ...[ALLOWED.address, `[${ALLOWED.address6}]`].map((each) => `${each}:443/6`),
  ...[17, 6].map((protocol) => `${NAME_SERVER}:53/${protocol}`),
]);
const HEAD = "version: 1\nlistener: true\nanswers: kernel\n";
export const POLICY = `policies:
  agents:
    for: [network=agents]
    mode: enforce
    addresses: enforce
    allow: ["${ALLOWED.name}:443", "**.${ALLOWED.below}:443"]
    new-names-per-minute: 10000
`;
// A packet that is on its way arrives before one that is sent later, but for those that wait for a neighbour.
const LATE_MS = 300;
// The time to live of what a machine sends, the protocol, and the flags of what resets a connection that is not known.
const OWN_TTL = 64;
const TCP = 6;
const RST = 0x04;

// What an attack may use.
export interface Attacker {
  readonly siege: Siege;
  readonly container: Container;
  readonly frames: HostileParts;
  // Sends frames by one of its interfaces.
  readonly sendBy: (link: string, ...frames: readonly Buffer[]) => void;
}

export class Siege implements AsyncDisposable {
  readonly engine: Engine;
  readonly internet: Internet;
  readonly upstream: Upstream;
  readonly #folder = makeFolder("siege");
  readonly #runner = new NamespaceRunner();
  readonly #machine = new Greeters();
  // By it containers and networks are made.
  #host: DockerHost;
  #sandbox: GoingCommand | undefined;
  #instance: Dns11 | undefined;
  #agent: Container | undefined;
  #neighbour: Container | undefined;

  private constructor(engine: Engine, internet: Internet, upstream: Upstream) {
    this.engine = engine;
    this.#host = engine;
    this.internet = internet;
    this.upstream = upstream;
  }

  // Without a policy; or with that one, by `dns11 sandbox`.
  static async begin(suite: Suite, sandboxPolicy?: string): Promise<Siege> {
    const resolvConf = `nameserver ${NAME_SERVER}\n`;
    const daemonJson = sandboxPolicy === undefined ? { dns: [LISTENER_ADDRESSES.ipv4] } : {};
    const engine = await startEngine({ suite, resolvConf, daemonJson });
    await engine.enter("sysctl", ["-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"]);
    const internet = await Internet.connect(engine.id);
    const upstream = await startUpstream(internet.netns, { address: NAME_SERVER });
    const siege = new Siege(engine, internet, upstream);
    await siege.#serveOnMachine();
    siege.#write("");
    siege.#instance = await startDns11(engine, { args: ["--config", siege.#file] });
    if (sandboxPolicy !== undefined) await siege.#enterSandbox(sandboxPolicy);
    await createNetwork(siege.#host, "agents", { subnet: "10.77.0.0/24", subnet6: "fd77::/64" });
    await createNetwork(siege.#host, "open");
    siege.#neighbour = await siege.run({ name: "neighbour" });
    siege.#agent = await siege.run({ name: "agent" });
    // One that routes what it is sent, as many do.
    await siege.#neighbour.enter("sysctl", ["-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"]);
    return siege;
  }

  get agent(): Container {
    return must(this.#agent);
  }

  get neighbour(): Container {
    return must(this.#neighbour);
  }

  get instance(): Dns11 {
    return must(this.#instance);
  }

  get #file(): string {
    return join(this.#folder, "dns11.yaml");
  }

  // On the network of the policy.
  async run(options: ContainerOptions): Promise<Container> {
    return await runContainer(this.#host, { networks: ["agents"], ...options });
  }

  // Resolves when the container is held to its policy, or no more.
  async setPolicy(policy: string): Promise<void> {
    this.#write(policy);
    await this.instance.reload();
    const expected = policy === "" ? "open" : "refused";
    await waitFor(`an address to be ${expected}`, async () =>
      (await connectTo(this.agent, DENIED.address, DENIED.port)) === expected ? true : undefined,
    );
  }

  async reload(policy: string): Promise<void> {
    this.#write(policy);
    await this.instance.reload();
  }

  async replace(): Promise<void> {
    this.#instance = await replaceDns11(this.engine, this.instance, { args: ["--config", this.#file] });
  }

  async attacker(container: Container = this.agent): Promise<Attacker> {
    const network = (await this.engine.api("/networks/agents")) as { readonly Id: string };
    const shown = await check("ip", ["-n", this.engine.id, "link", "show", `br-${network.Id.slice(0, 12)}`]);
    const frames = {
      sender: await this.#linkEnd(container),
      neighbour: await this.#linkEnd(this.neighbour),
      bridgeMac: /link\/ether (\S+)/.exec(shown)?.[1] ?? "",
      to: DENIED.address,
      to6: DENIED.address6,
    };
    return {
      siege: this,
      container,
      frames,
      sendBy: (link, ...sent) => this.#sendBy(container, link, sent),
    };
  }

  // What has got out since the last call, in words: names that the policy does not allow, and packets to elsewhere. What the container
  // sent before this call has arrived.
  async leaks(): Promise<string[]> {
    await this.#fence();
    return await this.seen();
  }

  // What has been seen of that by now.
  async seen(): Promise<string[]> {
    return [...new Set(await this.#found())];
  }

  async #found(): Promise<string[]> {
    const names = (await this.upstream.queries()).map(({ name }) => name.toLowerCase());
    await this.upstream.forget();
    return [
      ...names.filter((name) => !isAllowed(name)).map((name) => `asked ${name}`),
      ...this.internet.arrivals().flatMap(({ to, bytes }) => {
        const isOwnMessage = /^\[(?:fd99|fe80|ff02):/.test(to) || to.startsWith("type ");
        if (bytes.includes(MARK)) return [`marked ${to}`];
        // With its headers: they say who sent it, and whether it begins a connection.
        return OPEN.has(to) || isOwnMessage || isRefusalOfMachine(bytes)
          ? []
          : [`sent ${to}: ${bytes.subarray(14, 74).toString("hex")}`];
      }),
    ];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sandbox?.end("SIGTERM");
    await this.#machine[Symbol.asyncDispose]();
    await this.#instance?.[Symbol.asyncDispose]();
    await this.upstream[Symbol.asyncDispose]();
    await this.internet[Symbol.asyncDispose]();
    await this.engine[Symbol.asyncDispose]();
    this.#runner.close();
  }

  // All that is made from now on is in one.
  async #enterSandbox(policy: string): Promise<void> {
    const file = join(this.#folder, "sandbox.yaml");
    writeFileSync(file, `version: 1\n${policy}`);
    const place = ["-H", this.engine.host, "--state-dir", this.instance.stateDir];
    const command = ["sh", "-c", "echo socket $DOCKER_HOST; exec sleep 3600"];
    this.#sandbox = new GoingCommand(["sandbox", ...place, "--policy", file, "--", ...command]);
    await this.#sandbox.says(/socket unix:\S+\n/);
    const [, path = ""] = /socket unix:\/\/(\S+)\n/.exec(this.#sandbox.out) ?? [];
    this.#host = new EngineAtSocket(path);
  }

  // An allowed name and an allowed connection, by the same way as everything else.
  async #fence(): Promise<void> {
    const { status } = await dig(this.agent, ALLOWED.name);
    const seen = await connectTo(this.agent, ALLOWED.address, 443);
    if (status !== "NOERROR" || seen !== "open") throw new Error(`what is allowed fails: ${status}, ${seen}`);
    await new Promise((resolve) => setTimeout(resolve, LATE_MS));
  }

  #write(policy: string): void {
    writeFileSync(this.#file, `${HEAD}${policy}`);
  }

  // As a cloud has it.
  async #serveOnMachine(): Promise<void> {
    await addAddress(this.engine.netnsPath, METADATA);
    await this.#machine.open(80, (listen) => this.#within(this.engine.netnsPath, listen));
  }

  async #linkEnd(container: Container): Promise<LinkEnd> {
    const shown = stdoutOf(await container.enter("ip", ["address", "show", "dev", "eth0"]), "ip");
    return {
      mac: /link\/ether (\S+)/.exec(shown)?.[1] ?? "",
      address: container.address("agents"),
      address6: container.address6("agents"),
      linkLocal: /inet6 (fe80[^/]+)\//.exec(shown)?.[1] ?? "",
    };
  }

  #sendBy(container: Container, link: string, frames: readonly Buffer[]): void {
    this.#within(container.netnsPath, () => {
      const socket = new PacketSocket(scopeOf(`fe80::%${link}`));
      try {
        for (const each of frames) socket.send(each);
      } finally {
        socket.close();
      }
    });
  }

  #within<T>(netnsPath: string, work: () => T): T {
    const fd = openSync(netnsPath, "r");
    try {
      return this.#runner.within(fd, work);
    } finally {
      closeSync(fd);
    }
  }
}

// What dns11 asks on its own, to find out whether a server asks it, is not the container's.
// dns11 finds forwarding loops by names of its own, below what was asked and below the root.
function isAllowed(name: string): boolean {
  const asked = name.replace(/^[0-9a-f]{16}\.dns11-loop\.?/, "");
  return asked === "" || asked === ALLOWED.name || (asked.endsWith(`.${ALLOWED.below}`) && !asked.includes(MARK));
}

// A reset of the machine's own kernel, for a late packet of a server whose connection a policy has ended. What a container sends is
// forwarded, which takes one off its time to live.
function isRefusalOfMachine(frame: Buffer): boolean {
  const isIPv6 = frame.readUInt16BE(12) === 0x86dd;
  const [ttlAt, protocolAt, tcpAt] = isIPv6 ? [21, 20, 54] : [22, 23, 34];
  return frame[ttlAt] === OWN_TTL && frame[protocolAt] === TCP && frame[tcpAt + 13] === RST;
}

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the siege has not begun");
  return value;
}
