// The ports at 127.0.0.11 in a container: those of Docker's resolver, behind its rules, and those of dns11 where it serves.
import type { Container } from "../engine/container.ts";
import { stdoutOf } from "../program/command.ts";
import { dig } from "./dig.ts";

const RESOLVER = "127.0.0.11";

interface ResolverPorts {
  readonly udp: readonly number[];
  readonly tcp: readonly number[];
}

export async function resolverPorts(container: Container): Promise<ResolverPorts> {
  const portsIn = async (file: string): Promise<number[]> => {
    const text = stdoutOf(await container.enter("cat", [`/proc/net/${file}`]), file);
    return [...text.matchAll(/: 0B00007F:([0-9A-F]{4}) /g)].map(([, port]) => Number.parseInt(port ?? "", 16));
  };
  return { udp: await portsIn("udp"), tcp: await portsIn("tcp") };
}

// Asks a new name at each of them, past all rules.
export async function askAtPorts(container: Container, newName: () => string): Promise<void> {
  const { udp, tcp } = await resolverPorts(container);
  for (const [option, ports] of [
    ["+notcp", udp],
    ["+tcp", tcp],
  ] as const) {
    if (ports.length === 0) throw new Error("Docker's resolver has no ports");
    for (const port of ports)
      await dig(container, `@${RESOLVER}`, "+time=2", "+tries=1", "-p", String(port), option, newName());
  }
}
