// A DNS server that asks etcd once for each query, as CoreDNS is documented to do: what a query costs that way. It is no
// CoreDNS: only the way to etcd is the same. Arguments: endpoint, the prefix of the keys, port.

import { createSocket } from "node:dgram";

import { decode, encode } from "dns-packet";

import { Gateway } from "../../../src/features/etcd/client/gateway.ts";
import { endOf } from "../../../src/features/etcd/client/keys.ts";
import { encoded, readPage } from "../../../src/features/etcd/client/messages.ts";

const [endpoint = "", prefix = "", port = ""] = process.argv.slice(2);
const gateway = new Gateway({ endpoints: [endpoint], ca: undefined, user: undefined });
const server = createSocket("udp4");

server.on("message", (message, { address, port: clientPort }) => {
  void reply(message, address, clientPort);
});
server.bind(Number(port), "127.0.0.1", () => process.stderr.write("ready\n"));

async function answersTo(): Promise<string[]> {
  const body = { key: encoded(prefix), range_end: encoded(endOf(prefix)) };
  const { keys } = readPage(await gateway.call("/v3/kv/range", body));
  return keys.flatMap(({ value }) => (JSON.parse(value?.toString() ?? "{}") as { host?: string }).host ?? []);
}

async function reply(message: Buffer, address: string, clientPort: number): Promise<void> {
  const { id = 0, questions = [] } = decode(message);
  const [question] = questions;
  const addresses = await answersTo().catch(() => []);
  const answers = addresses.map((data) => ({ type: "A" as const, name: question?.name ?? "", ttl: 5, data }));
  server.send(encode({ type: "response", id, questions, answers }), clientPort, address);
}
