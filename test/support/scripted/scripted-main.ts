/**
 * Process of scripted upstream servers, one at each address, by UDP and TCP. They share one process, so that the order
 * of its output is the order of the queries. The scenario comes as a line of its input and starts at that moment; the
 * process ends with that input. Arguments: the addresses.
 */
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { createServer, isIPv6, type Server, type Socket } from "node:net";
import { createInterface } from "node:readline";

import { onEachMessage } from "../rig/framed.ts";
import { type Scenario, actionOf } from "./scenario.ts";
import { type Delivery, scriptedReply } from "./scripted-reply.ts";
import type { ScriptedLine, ScriptedOrder } from "./scripted.ts";
import { replyTo } from "../servers/upstream-answer.ts";
import { readQuestion, type Transport, type UpstreamQuestion } from "../servers/upstream-question.ts";

const PORT = 53;
/** Delay with which a server may open or close. */
const TICK_MS = 5;

let scenario: Scenario = [];
let startMs = performance.now();
const counts = new Map<string, number>();

function report(line: ScriptedLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** Sends a delivery of one server by the transport of the query. */
type Deliver = (delivery: Delivery) => void;

function handle(message: Buffer, transport: Transport, from: string, server: number, deliver: Deliver): void {
  const question = readQuestion(message, transport, from);
  if (question === undefined) return;
  const atMs = performance.now() - startMs;
  report({ query: { ...question, server, atMs } });
  const action = actionOf(scenario, server, question.name, atMs);
  const counted = `${server} ${question.name.toLowerCase()}`;
  const count = (counts.get(counted) ?? 0) + 1;
  counts.set(counted, count);
  const { deliveries, delayMs } =
    action === undefined
      ? byName(question)
      : { deliveries: scriptedReply({ action, question, server, count }), delayMs: action.delayMs };
  if (delayMs === 0) deliveries.map(deliver);
  else setTimeout(() => deliveries.map(deliver), delayMs);
}

function byName(question: UpstreamQuestion): { deliveries: readonly Delivery[]; delayMs: number } {
  const reply = replyTo(question);
  return { deliveries: reply === undefined ? [] : [{ message: reply.message }], delayMs: reply?.delayMs ?? 0 };
}

class ScriptedServer {
  readonly #address: string;
  readonly #index: number;
  readonly #connections = new Set<Socket>();
  #udp: UdpSocket | undefined;
  #elsewhere: UdpSocket | undefined;
  #tcp: Server | undefined;
  #isMoving = false;

  constructor(address: string, index: number) {
    this.#address = address;
    this.#index = index;
  }

  async open(): Promise<void> {
    this.#elsewhere ??= await this.#bound(0);
    const udp = await this.#bound(PORT);
    udp.on("message", (message, { address, port }) => {
      handle(message, "udp", `${address}#${port}`, this.#index, (delivery) => {
        const socket = delivery.how === "elsewhere" ? this.#elsewhere : this.#udp;
        socket?.send(delivery.message, port, address);
      });
    });
    this.#udp = udp;
    this.#tcp = await this.#listening();
  }

  /** Resolves when both ports are free again. */
  async close(): Promise<void> {
    const [udp, tcp] = [this.#udp, this.#tcp];
    this.#udp = undefined;
    this.#tcp = undefined;
    for (const connection of this.#connections) connection.destroy();
    await Promise.all([
      new Promise<void>((resolve) => (udp === undefined ? resolve() : udp.close(() => resolve()))),
      new Promise<void>((resolve) => (tcp === undefined ? resolve() : tcp.close(() => resolve()))),
    ]);
  }

  async follow(): Promise<void> {
    const isClosed = actionOf(scenario, this.#index, "", performance.now() - startMs)?.word === "closed";
    if (this.#isMoving || isClosed === (this.#udp === undefined)) return;
    this.#isMoving = true;
    await (isClosed ? this.close() : this.open());
    this.#isMoving = false;
  }

  async #bound(port: number): Promise<UdpSocket> {
    const socket = createSocket(isIPv6(this.#address) ? "udp6" : "udp4");
    await new Promise<void>((resolve, reject) => {
      socket.once("error", reject);
      socket.bind(port, this.#address, resolve);
    });
    // A client that is gone is no failure of the server.
    socket.on("error", () => undefined);
    return socket;
  }

  async #listening(): Promise<Server> {
    const server = createServer((connection) => this.#serve(connection));
    return await new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(PORT, this.#address, () => resolve(server));
    });
  }

  #serve(connection: Socket): void {
    const from = `${connection.remoteAddress ?? ""}#${connection.remotePort ?? 0}`;
    this.#connections.add(connection);
    connection.on("close", () => this.#connections.delete(connection));
    onEachMessage(connection, (message) => {
      handle(message, "tcp", from, this.#index, (delivery) => sendFramed(connection, delivery));
    });
  }
}

function sendFramed(connection: Socket, { message, how }: Delivery): void {
  if (!connection.writable) return;
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  if (how !== "cut") connection.write(Buffer.concat([length, message]));
  else connection.end(Buffer.concat([length, message.subarray(0, message.length >> 1)]));
}

const servers = process.argv.slice(2).map((address, index) => new ScriptedServer(address, index + 1));
await Promise.all(servers.map(async (server) => await server.open()));
let ticking: NodeJS.Timeout | undefined;
report({ done: 0 });
for await (const line of createInterface({ input: process.stdin })) {
  const { order, play } = JSON.parse(line) as ScriptedOrder;
  if (play !== undefined) {
    scenario = play;
    startMs = performance.now();
    const canClose = scenario.some(({ steps }) => steps.some(({ action }) => action.word === "closed"));
    if (canClose) ticking ??= setInterval(() => servers.map(async (server) => await server.follow()), TICK_MS);
    await Promise.all(servers.map(async (server) => await server.follow()));
  }
  // After pending socket events: a datagram that arrived before this line is reported before it.
  setImmediate(() => report({ done: order }));
}
process.exit(0);
