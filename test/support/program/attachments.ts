// Attachments to namespaces without an engine: the parts that an attachment needs, with the real listeners or with an
// endpoint that never answers.

import { Attachment } from "../../../src/container/attach/attachment.ts";
import { CONTAINER_MODE } from "../../../src/container/attach/attach-mode.ts";
import type { AttachmentParts, Endpoint, OpenEndpoint } from "../../../src/container/attach/attachment-parts.ts";
import { NamespaceRunner } from "../../../src/container/namespace/namespace-runner.ts";
import { type EngineHost, closeEngineHost, openEngineHost } from "../../../src/container/namespace/engine-host.ts";
import { proveNamespace } from "../../../src/container/namespace/proof.ts";
import { type NamespaceSockets, closeSockets } from "../../../src/container/namespace/sockets.ts";
import { MessageBlock } from "../../../src/kernel/message-block.ts";
import { PacketBatch } from "../../../src/kernel/packet-batch.ts";
import { NetlinkMemory } from "../../../src/kernel/netlink-socket.ts";
import { DEFAULT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import type { View } from "../../../src/base/model/view.ts";
import { Answerer } from "../../../src/query/answer.ts";
import { type Forward, SLOT_BYTES } from "../../../src/query/ports.ts";
import { FailureTables } from "../../../src/query/failures/failure-table.ts";
import { Clients } from "../../../src/query/client/clients.ts";
import { QueryHistories } from "../../../src/query/history/query-histories.ts";
import { Outcome } from "../../../src/query/record/outcome.ts";
import { Endpoint as ListeningEndpoint } from "../../../src/query/listen/endpoint.ts";
import { streamBlock } from "../../../src/query/listen/tcp-connection.ts";
import { TimeSlice } from "../../../src/query/listen/udp.ts";
import { sharePools } from "../../../src/query/client/slots.ts";

export const VIEW: View = { names: [], upstreams: { routes: [], isNdotsSet: false } };

// The same, with an upstream for every name.
const FORWARDING_VIEW: View = {
  names: [],
  upstreams: {
    routes: [
      {
        suffix: new Uint8Array(),
        labelCount: 0,
        servers: [{ from: "host", address: "192.0.2.53", port: 53 }],
        isLocal: false,
      },
    ],
    isNdotsSet: false,
  },
};

// Takes over the sockets and never answers.
export const silent: OpenEndpoint = (): Endpoint => {
  const bound: NamespaceSockets[] = [];
  return {
    probeTarget: {
      expect: () => undefined,
      hasSeen: () => false,
      isBehind: () => false,
      hasLost: () => false,
      reset: () => undefined,
    },
    setView: () => undefined,
    clientNumber: 0,
    add: (sockets) => void bound.push(...sockets),
    inFlight: 0,
    tcpClientPorts: [],
    counters: {},
    pause: () => bound,
    resume: () => undefined,
    close: () => closeSockets(bound),
  };
};

// The real listeners, which report only the arrival of probes.
export const answering: OpenEndpoint = openListening(() => undefined);

// The same, answering every other query with one address.
export function answeringWith(address: Buffer): OpenEndpoint {
  return openListening((_, { query, questionEnd }, __, respond) => {
    const question = Buffer.from(query.subarray(0, questionEnd));
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, ...address]);
    question.writeUInt16BE(0x8180, 2);
    for (const [index, count] of [1, 1, 0, 0].entries()) question.writeUInt16BE(count, 4 + index * 2);
    setImmediate(() => respond(Buffer.concat([question, record]), new Outcome()));
  }, FORWARDING_VIEW);
}

function openListening(forward: Forward, instead?: View): OpenEndpoint {
  return (view, dial) => listening(forward, instead ?? view, dial);
}

function listening(forward: Forward, ...[view, dial]: Parameters<OpenEndpoint>): Endpoint {
  const answerer = new Answerer(DEFAULT_BEHAVIOUR);
  const common = { answerer, forward };
  const udp = {
    ...common,
    batch: new PacketBatch(),
    block: new MessageBlock(8, SLOT_BYTES),
    queryBytesMax: 512,
    slice: new TimeSlice(Infinity),
  };
  const tcp = { ...common, pipelinedMax: 1, queriesMax: 128, block: streamBlock() };
  const shares = sharePools(Number.POSITIVE_INFINITY);
  const clients = new Clients({ histories: new QueryHistories("full"), failures: new FailureTables("full"), shares });
  return new ListeningEndpoint(clients.open("x", view, dial), { udp, tcp });
}

export class Attachments implements Disposable {
  readonly runner = new NamespaceRunner();
  readonly memory = new NetlinkMemory();
  readonly #host: EngineHost = openEngineHost(process.pid);
  #zone = 4710;

  // An attachment in the namespace at this path, by default with rules owned by a process.
  in(path: string, parts: Partial<AttachmentParts> = {}): Attachment {
    return new Attachment({ containerId: "x", sandboxKey: path, pid: 0 }, CONTAINER_MODE, VIEW, this.parts(parts));
  }

  parts(parts: Partial<AttachmentParts> = {}): AttachmentParts {
    return {
      runner: this.runner,
      memory: this.memory,
      ruleBackend: { backend: "nft-owner" },
      nextZone: () => (this.#zone += 1),
      descriptorsMax: 1_000_000,
      host: () => this.#host,
      prove: (claim) => proveNamespace(claim, this.#host, this.runner.homeId),
      openEndpoint: silent,
      onState: () => undefined,
      onForeignChange: () => undefined,
      ...parts,
    };
  }

  [Symbol.dispose](): void {
    closeEngineHost(this.#host);
    this.runner.close();
  }
}
