/**
 * Keeper: holds copies of the descriptors that the main process serves with. When the main process dies, the keeper
 * removes its rules at once, instead of leaving them to the kernel, which removes one table after the other. Where Docker's
 * resolver must not answer, it keeps them and refuses all queries, until the next process takes over. It knows nothing of names,
 * engines or containers.
 *
 *   serving --(the main process exits, or hangs and is killed)--> tables removed, exit; some remain: alone
 *   alone: refuses --(a new process takes over, or ends it)--> serving, for the new process; or tables removed, exit
 *      |  a new process requests a takeover
 *      v
 *   requested --(the main process pauses)--> given --(the new process serves)--> serving, for the new process
 *      |                                       |  it exits, or takes too long and is killed
 *      +--(it does not, or cancelled)----------+--> back to the main process; without one: tables removed, or alone
 *
 * It waits for its channels with a short timeout and does one thing after the other. What waits for the lock of a namespace,
 * which somebody in a container may hold, is done in threads of the pool: removing tables, closing descriptors.
 */
import { setImmediate as nextRound, setTimeout as sleep } from "node:timers/promises";
import { type Channel, acceptAt, peerOf, waitReadable } from "../kernel/channel.ts";
import { closeQuietly, addressOf, lastErrno, receive, send } from "../kernel/libc.ts";
import type { NetlinkMemory } from "../kernel/netlink-socket.ts";
import type { HeldNamespace } from "../base/model/held-namespace.ts";
import { reasonOf } from "../base/lib/fault.ts";
import {
  ANSWERS_AT,
  CODES_AT,
  FLAGS_AT,
  HEADER_BYTES,
  OPCODE_BITS,
  QR,
  QUESTIONS_AT,
  RA,
  RD,
} from "../base/dns/header.ts";
import { u16 } from "../base/dns/bytes.ts";
import { LABEL_BYTES_MAX } from "../base/dns/name.ts";
import { RCODE } from "../base/dns/rcode.ts";
import { QUESTION_FIXED_BYTES } from "../base/dns/record.ts";
import { MessageBlock } from "../kernel/message-block.ts";
import { KEEPER_LIMITS } from "./limits.ts";
import { DeferredClose, closeDescriptors, removeTables } from "./held-descriptors.ts";
import { PROGRAMS_MAX, PROTOCOL_VERSION, type ToKeeper } from "./protocol.ts";
import { PeerProcess } from "./peer-process.ts";
import { whyNotTaker } from "./predecessor.ts";
import { LIMITS } from "../base/limits.ts";
import { mapConcurrent } from "../base/lib/async.ts";
import { POOL_CALLS, closeInPool } from "../kernel/in-pool.ts";
import { StreamReader, withLength } from "../base/lib/stream-reader.ts";

/** A process that requests a takeover. */
interface Successor {
  readonly peer: PeerProcess;
  /** What the keeper holds for it: copies of what it was given, and what it created itself. */
  readonly held: Map<number, HeldNamespace>;
  stage: "greeted" | "requested" | "given";
  /** The time at which this stage times out. */
  dueMs: number;
}

interface KeeperParts {
  readonly main: PeerProcess;
  /** New processes connect there. */
  readonly listener: number;
  readonly memory: NetlinkMemory;
  readonly onEvent: (about: Readonly<Record<string, unknown>>, text: string) => void;
  /** It goes on without a main process, after the last event of that. */
  readonly onAlone: () => void;
}

export class Keeper {
  readonly #parts: KeeperParts;
  readonly #deferredClose = new DeferredClose();
  readonly #refusals = new Refusals();
  #main: PeerProcess;
  #held = new Map<number, HeldNamespace>();
  #successor: Successor | undefined;
  /** The last key of those that were adopted: a main process counts up from 1, as the next one does. */
  #adopted = 0;
  #hasBeaten = false;
  #isDone = false;
  /** No process serves any more, and what is held is refused. */
  #isAlone = false;
  readonly #handedBack: Promise<void>[] = [];
  /** Logged once, though it may come back with every round. */
  #lastFailure = "";

  constructor(parts: KeeperParts) {
    this.#parts = parts;
    this.#main = parts.main;
    this.#greet(parts.main);
  }

  /** Runs until there is nothing left to watch, and everything is handed back. */
  async run(): Promise<void> {
    while (!this.#isDone) {
      try {
        this.#handleRound();
      } catch (error) {
        this.#handleFailure(error);
        // It may fail again at once.
        await sleep(KEEPER_LIMITS.pollMs);
      }
      // Lets what the pool has done come to its end.
      await nextRound();
    }
    // The next process need not wait for locks.
    closeQuietly(this.#parts.listener);
    await Promise.all(this.#handedBack);
  }

  #handleRound(): void {
    const { listener } = this.#parts;
    const watched = [this.#main.fd, listener, ...(this.#successor === undefined ? [] : [this.#successor.peer.fd])];
    this.#refusals.setNamespaces(this.#refused());
    const ready = waitReadable([...watched, ...this.#refusals.descriptors], KEEPER_LIMITS.pollMs);
    this.#refusals.answer(ready.slice(watched.length));
    if (!this.#isAlone) this.#handleMain();
    if (ready[1] === true) this.#accept();
    if (this.#successor !== undefined) this.#handleSuccessor(this.#successor);
    this.#checkTimeouts(performance.now());
  }

  /**
   * Without a successor, a main process starts another keeper. Nobody does so for a keeper that is alone, and Docker's resolver
   * would answer.
   */
  #handleFailure(error: unknown): void {
    const successor = this.#successor;
    if (successor === undefined && !this.#isAlone) throw error;
    const reason = reasonOf(error);
    if (reason !== this.#lastFailure) this.#parts.onEvent({ reason }, "keeper failed, going on");
    this.#lastFailure = reason;
    if (successor === undefined) return;
    // It may be using what it was given.
    if (successor.stage === "given") successor.peer.kill();
    this.#dropSuccessor(successor, reason);
  }

  #greet(peer: PeerProcess): void {
    const [main, refusing] = this.#isAlone ? [0, this.#held.size] : [this.#main.pid, 0];
    peer.send({ is: "hello", version: PROTOCOL_VERSION, keeper: process.pid, main, refusing });
  }

  /** Nothing of what a new process has been given: it reads the sockets now. */
  #refused(): HeldNamespace[] {
    if (this.#isDone || this.#successor?.stage === "given") return [];
    const held = [...this.#held.values()];
    return this.#isAlone ? held : held.filter(({ alone }) => alone === "refuse-now");
  }

  #handleMain(): void {
    const main = this.#main;
    for (const message of main.messages()) {
      this.#handle(message);
      if (this.#isDone) return;
    }
    // A new process that was given everything goes on without the main process.
    const hasEnded = main.isGone || main.hasEnded();
    if (hasEnded && this.#successor?.stage !== "given") this.#handBack("the main process exited");
  }

  #handle(message: ToKeeper): void {
    switch (message.is) {
      case "hold":
        return this.#hold(this.#held, message.key, message.namespace);
      case "release":
        return this.#release(this.#held, message.key);
      case "beat":
        this.#hasBeaten = true;
        this.#main.heartbeat.beat(performance.now());
        this.#main.send({ is: "alive" });
        return;
      case "refuse":
        if (this.#successor?.stage === "requested") this.#refuse(this.#successor, message.reason);
        return;
      case "yield":
        return this.#handOver();
      case "end":
        this.#isDone = true;
        return;
      case "hello":
        if (message.version !== PROTOCOL_VERSION) this.#isDone = true;
        return;
      default:
        return;
    }
  }

  #hold(held: Map<number, HeldNamespace>, key: number, namespace: HeldNamespace): void {
    const before = held.get(key);
    if (held.size >= KEEPER_LIMITS.namespaces && before === undefined) return closeDescriptors(namespace);
    const gate = namespace.gate ?? before?.gate;
    held.set(key, { ...namespace, gate });
    if (before === undefined) return;
    const oldGate = gate === before.gate ? undefined : before.gate;
    this.#deferredClose.add({ ...before, gate: oldGate }, performance.now());
  }

  #release(held: Map<number, HeldNamespace>, key: number): void {
    const namespace = held.get(key);
    if (namespace === undefined) return;
    held.delete(key);
    this.#deferredClose.add(namespace, performance.now());
  }

  /** Accepts only our own user, and one new process at a time. */
  #accept(): void {
    const channel = acceptAt(this.#parts.listener);
    if (channel === undefined) return;
    try {
      this.#admit(channel);
    } catch (error) {
      this.#parts.onEvent({ reason: reasonOf(error) }, "takeover refused");
      channel.close();
    }
  }

  #admit(channel: Channel): void {
    const { pid, uid } = peerOf(channel.fd);
    if (uid !== process.getuid?.() || this.#successor !== undefined) return channel.close();
    // The main process would decide.
    const reason = this.#isAlone ? whyNotTaker(pid, { mayShareGroup: true }) : undefined;
    if (reason !== undefined) {
      this.#parts.onEvent({ successor: pid, reason }, "takeover refused");
      return channel.close();
    }
    const peer = new PeerProcess(channel, pid);
    this.#greet(peer);
    // While nobody else serves, it has all the time that Docker needs to start.
    const dueMs = this.#isAlone ? Infinity : performance.now() + KEEPER_LIMITS.learnMs;
    this.#successor = { peer, held: new Map(), stage: "greeted", dueMs };
  }

  #handleSuccessor(successor: Successor): void {
    for (const message of successor.peer.messages()) {
      if (message.is === "hold" && successor.stage === "given") {
        this.#hold(successor.held, message.key, message.namespace);
      } else if (message.is === "hold") closeDescriptors(message.namespace);
      else if (message.is === "release") this.#release(successor.held, message.key);
      else if (message.is === "beat") successor.peer.send({ is: "alive" });
      else if (message.is === "take" && successor.stage === "greeted" && !successor.peer.hasExited())
        this.#requestTakeover(successor);
      else if (message.is === "taken" && successor.stage === "given") return this.#completeTakeover(successor);
      else if (message.is === "end" && successor.stage === "greeted" && this.#isAlone) return this.#endAll(successor);
      else if (message.is === "hello" && message.version === PROTOCOL_VERSION) continue;
      else if (successor.stage !== "given") return this.#dropSuccessor(successor, "it sent a message out of turn");
    }
    if (successor.peer.isGone || successor.peer.hasEnded()) this.#dropSuccessor(successor, "it exited");
  }

  #requestTakeover(successor: Successor): void {
    successor.stage = "requested";
    successor.dueMs = performance.now() + KEEPER_LIMITS.yieldMs;
    if (this.#isAlone) this.#handOver();
    else this.#main.send({ is: "wanted", successor: successor.peer.pid });
  }

  /** An operator wants Docker's resolver to answer after all. */
  #endAll({ peer }: Successor): void {
    this.#handBack("an operator ended the policies", () => false);
    this.#successor = undefined;
    void Promise.all(this.#handedBack).then(() => peer.close());
  }

  #refuse(successor: Successor, reason: string): void {
    successor.peer.send({ is: "refused", reason });
    successor.peer.close();
    this.#successor = undefined;
    this.#parts.onEvent({ successor: successor.peer.pid, reason }, "takeover refused");
  }

  /** The main process is paused: sends everything that it serves with to the new process. */
  #handOver(): void {
    const successor = this.#successor;
    if (successor?.stage !== "requested") {
      this.#main.send({ is: "back" });
      return;
    }
    successor.stage = "given";
    successor.dueMs = performance.now() + KEEPER_LIMITS.takeMs;
    for (const namespace of this.#held.values()) {
      if (!sendWaiting(successor.peer, () => successor.peer.send({ is: "held", namespace }))) return;
    }
    sendWaiting(successor.peer, () => successor.peer.send({ is: "all", count: this.#held.size }));
  }

  /** The new process serves: the keeper watches it from now on. */
  #completeTakeover({ peer, held }: Successor): void {
    this.#main.send({ is: "gone", successor: peer.pid });
    this.#main.close();
    for (const namespace of this.#held.values()) closeDescriptors(namespace);
    this.#main = peer;
    this.#held = held;
    this.#successor = undefined;
    this.#isAlone = false;
    peer.heartbeat.beat(performance.now());
    this.#parts.onEvent({ main: peer.pid, namespaces: held.size }, "new process took over");
  }

  #checkTimeouts(nowMs: number): void {
    if (this.#isDone) return;
    this.#deferredClose.closeDue(nowMs);
    const successor = this.#successor;
    if (successor !== undefined && nowMs > successor.dueMs) {
      // It may be using what it was given, so it must be killed first.
      if (successor.stage === "given") successor.peer.kill();
      else successor.peer.send({ is: "refused", reason: "the main process did not pause in time" });
      this.#dropSuccessor(successor, "it took too long");
    }
    if (this.#isDone || this.#isAlone || !this.#hasBeaten || this.#successor?.stage === "given") return;
    if (!this.#main.heartbeat.check(nowMs)) return;
    this.#main.kill();
    this.#handBack("the main process hung and was killed");
  }

  /** The takeover failed: the previous process resumes, or Docker's resolver answers. */
  #dropSuccessor(successor: Successor, reason: string): void {
    this.#successor = undefined;
    const isMainGone = this.#isAlone || this.#main.isGone || this.#main.hasEnded();
    if (isMainGone && successor.stage === "given") this.#adopt(successor.held);
    const untilMs = performance.now() + KEEPER_LIMITS.yieldMs;
    // The main process needs a moment to put its own programs back.
    for (const namespace of successor.held.values()) this.#deferredClose.addAll(namespace, untilMs);
    successor.peer.close();
    if (successor.stage === "greeted") return;
    this.#parts.onEvent({ successor: successor.peer.pid, reason }, "takeover failed");
    this.#main.heartbeat.beat(performance.now());
    if (isMainGone || !this.#main.send({ is: "back" })) {
      this.#handBack("the main process exited and no new process took over");
    }
  }

  /** What a new process had begun to serve before it ended, in place of what it was given. */
  #adopt(held: Map<number, HeldNamespace>): void {
    for (const [key, namespace] of held) {
      held.delete(key);
      const [old, before] = [...this.#held].find(([, { id }]) => id === namespace.id) ?? [--this.#adopted];
      const programs = before === undefined ? namespace.programs : this.#keepTables(old, before, namespace);
      this.#hold(this.#held, old, { ...namespace, programs });
    }
  }

  /**
   * The link may still run the program of the process before, which calls through a table that the kernel empties when nobody has
   * it open.
   */
  #keepTables(key: number, before: HeldNamespace, { programs }: HeldNamespace): readonly number[] {
    if (programs.length === 0) return programs;
    const kept = before.programs.slice(1, 1 + PROGRAMS_MAX - programs.length);
    this.#held.set(key, { ...before, programs: before.programs.filter((fd) => !kept.includes(fd)) });
    return [...programs, ...kept];
  }

  /**
   * No process serves any more. Docker's resolver answers in each container as soon as its table is gone; where it must not, the
   * keeper goes on.
   */
  #handBack(reason: string, isRefused = (held: HeldNamespace): boolean => held.alone !== "hand-back"): void {
    const all = [...this.#held];
    this.#held = new Map(all.filter(([, held]) => isRefused(held)));
    this.#isAlone = this.#held.size > 0;
    this.#isDone = !this.#isAlone;
    const others = all.map(([, held]) => held).filter((held) => !isRefused(held));
    this.#handedBack.push(this.#removeAll(reason, others));
    if (!this.#isAlone) return;
    // It may have sent more before it was killed.
    this.#main.close();
    this.#parts.onEvent({ reason, namespaces: this.#held.size }, "policies are enforced, refusing all queries");
    if (this.#successor !== undefined) this.#decideOn(this.#successor);
  }

  /** It connected while the main process would have decided whether it may take over. */
  #decideOn(successor: Successor): void {
    const reason = whyNotTaker(successor.peer.pid, { mayShareGroup: true });
    if (reason !== undefined) this.#refuse(successor, reason);
    else if (successor.stage === "requested") this.#handOver();
    else successor.dueMs = Infinity;
  }

  async #removeAll(reason: string, all: readonly HeldNamespace[]): Promise<void> {
    const startMs = performance.now();
    const handBack = new HandBack(this.#parts.memory, this.#deferredClose);
    const done = handBack.run(all);
    // Where locks are held that takes as long as somebody likes.
    await Promise.race([done, sleep(KEEPER_LIMITS.handBackMs, undefined, { ref: false })]);
    const { removed: namespaces, waiting } = handBack;
    const tookMs = Math.round(performance.now() - startMs);
    const about = { reason, main: this.#main.pid, namespaces, tookMs, ...(waiting > 0 && { waiting }) };
    if (namespaces + waiting > 0)
      this.#parts.onEvent(about, "removed the main process's rules, Docker's resolver answers");
    if (this.#isAlone) this.#parts.onAlone();
    await done;
  }
}

/** A thousand namespaces do not fit into the channel: waits for the reader. */
function sendWaiting(peer: PeerProcess, deliver: () => boolean): boolean {
  const untilMs = performance.now() + KEEPER_LIMITS.yieldMs;
  while (!deliver()) {
    for (const _ of peer.messages()) continue;
    if (peer.isGone || performance.now() > untilMs) return false;
    waitReadable([], 1);
  }
  return true;
}

/**
 * Answers every query in namespaces that nobody serves and that are not to go back to Docker's resolver, which would
 * forward any name. The answer is SERVFAIL: it will be another one when dns11 is back, and no program takes it for a name that
 * does not exist.
 */
class Refusals {
  readonly #block = new MessageBlock(KEEPER_LIMITS.refusedBatch, KEEPER_LIMITS.refusedBytes);
  readonly #connections = new RefusedConnections(refusalOf);
  #udp: readonly number[] = [];
  #tcp: readonly number[] = [];

  /** The namespaces to refuse from now on, instead of those before. */
  setNamespaces(namespaces: readonly HeldNamespace[]): void {
    const pairs = namespaces.flatMap((each) => each.pairs);
    this.#udp = pairs.map(({ udp }) => udp);
    this.#tcp = pairs.map(({ tcp }) => tcp);
    if (pairs.length === 0) this.#connections.closeAll();
  }

  /** To wait for. */
  get descriptors(): readonly number[] {
    return [...this.#udp, ...this.#tcp, ...this.#connections.descriptors];
  }

  /** `readable` says so of each of `descriptors`. A batch of each socket, so that none takes the time of the others. */
  answer(readable: readonly boolean[]): void {
    const connections = readable.slice(this.#udp.length + this.#tcp.length);
    this.#connections.answer(connections, performance.now());
    for (const [index, fd] of this.#udp.entries()) if (readable[index] === true) this.#answerUdp(fd);
    for (const [index, fd] of this.#tcp.entries())
      if (readable[this.#udp.length + index] === true) this.#connections.accept(fd, performance.now());
  }

  #answerUdp(fd: number): void {
    const block = this.#block;
    const count = block.receive(fd, 0, KEEPER_LIMITS.refusedBytes);
    for (let slot = 0; slot < count; slot++) {
      const start = block.offsetOf(slot);
      const length = refusalOf(block.data.subarray(start, start + block.lengthOf(slot)));
      if (length > 0 && block.senderPort(slot) !== 0) block.reply(slot, length);
    }
    block.flush(fd);
  }
}

/** Turns a query into its refusal, in place; returns its length, or 0 for what is no query. */
export function refusalOf(message: Uint8Array): number {
  if (message.length < HEADER_BYTES) return 0;
  const flags = message[FLAGS_AT] as number;
  const end = questionEnd(message);
  if ((flags & QR) !== 0 || u16(message, QUESTIONS_AT) !== 1 || end === undefined) return 0;
  message[FLAGS_AT] = QR | (flags & (OPCODE_BITS | RD));
  message[CODES_AT] = RA | RCODE.SERVFAIL;
  message.fill(0, ANSWERS_AT, HEADER_BYTES);
  return end;
}

/** A name in a question is not compressed. */
function questionEnd(message: Uint8Array): number | undefined {
  let at = HEADER_BYTES;
  for (;;) {
    const length = message[at];
    if (length === undefined || length > LABEL_BYTES_MAX) return undefined;
    at += length + 1;
    if (length === 0) break;
  }
  const end = at + QUESTION_FIXED_BYTES;
  return end <= message.length ? end : undefined;
}

/**
 * Removes the tables of all namespaces once nobody serves them, all at once, in threads of the pool. A transaction
 * that waits for the lock of a namespace makes those in all others wait, too. So each is sent after the gate of its namespace
 * was closed, which waits for that lock alone. Without a gate, and where the main process has reported that the lock is held, none is
 * sent: the tables go with the last descriptor of the socket that owns them.
 *
 * All other descriptors are closed a second later, because a keeper may go on alone for long, and no namespace should wait for
 * the closes of another one.
 */
class HandBack {
  readonly #memory: NetlinkMemory;
  readonly #deferredClose: DeferredClose;
  /** Namespaces whose tables were removed, and those that are still to be handed back. */
  removed = 0;
  waiting = 0;

  constructor(memory: NetlinkMemory, deferredClose: DeferredClose) {
    this.#memory = memory;
    this.#deferredClose = deferredClose;
  }

  /** Resolves when all are handed back. */
  async run(all: readonly HeldNamespace[]): Promise<void> {
    this.waiting = all.length;
    const lockedLast = all.toSorted((a, b) => Number(a.isLocked) - Number(b.isLocked));
    // Otherwise the first table would go after the last gate.
    await mapConcurrent(lockedLast, POOL_CALLS, async (each) => await this.#remove(each));
  }

  async #remove(namespace: HeldNamespace): Promise<void> {
    const { gate } = namespace;
    if (gate !== undefined) await closeInPool(gate);
    const netlink = await this.#removeTables(namespace);
    this.waiting--;
    // The number of a closed descriptor may be that of another one by then.
    const open = { ...namespace, gate: undefined, netlink };
    this.#deferredClose.addAll(open, performance.now() + LIMITS.nftLingerMs);
  }

  /** Returns the netlink socket unless it is closed. */
  async #removeTables(namespace: HeldNamespace): Promise<number | undefined> {
    const { isLocked, isOwned, gate } = namespace;
    if (isOwned && (isLocked || gate === undefined)) {
      await closeInPool(namespace.netlink);
      return undefined;
    }
    const { hasRemoved, netlink } = await removeTables(namespace, this.#memory);
    if (hasRemoved) this.removed++;
    return netlink;
  }
}

interface Connection {
  readonly fd: number;
  readonly reader: StreamReader;
  readonly sinceMs: number;
}

const EAGAIN = 11;

/**
 * TCP connections in namespaces that the keeper refuses. Each is read as far as its client sends whole short
 * queries, and closed for anything else.
 */
class RefusedConnections {
  readonly #refuse: (message: Uint8Array) => number;
  readonly #memory = Buffer.allocUnsafeSlow(KEEPER_LIMITS.refusedBytes);
  readonly #address = addressOf(this.#memory);
  /** The one that was accepted first comes first. */
  #open: Connection[] = [];

  constructor(refuse: (message: Uint8Array) => number) {
    this.#refuse = refuse;
  }

  get descriptors(): readonly number[] {
    return this.#open.map(({ fd }) => fd);
  }

  /** One for each round; the oldest makes room. */
  accept(listener: number, nowMs: number): void {
    const fd = acceptAt(listener)?.fd;
    if (fd === undefined) return;
    this.#open.push({ fd, reader: new StreamReader(), sinceMs: nowMs });
    if (this.#open.length > KEEPER_LIMITS.refusedConnections) closeQuietly(this.#open.shift()?.fd ?? -1);
  }

  /** `readable` says so of each of `descriptors`. */
  answer(readable: readonly boolean[], nowMs: number): void {
    this.#open = this.#open.filter((connection, index) => {
      const isOld = nowMs - connection.sinceMs > KEEPER_LIMITS.refusedConnectionMs;
      if (!isOld && (readable[index] !== true || this.#goesOn(connection))) return true;
      closeQuietly(connection.fd);
      return false;
    });
  }

  closeAll(): void {
    for (const { fd } of this.#open) closeQuietly(fd);
    this.#open = [];
  }

  #goesOn({ fd, reader }: Connection): boolean {
    const length = receive(fd, this.#address, this.#memory.length);
    if (length <= 0) return length < 0 && lastErrno() === EAGAIN;
    reader.push(this.#memory.subarray(0, length));
    for (let message = reader.next(); message !== undefined; message = reader.next()) {
      const end = this.#refuse(message);
      if (end === 0 || send(fd, withLength(message.subarray(0, end))) < 0) return false;
    }
    return reader.bytes <= KEEPER_LIMITS.refusedBytes * 2;
  }
}
