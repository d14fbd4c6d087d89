// Workloads of the data plane, each a row of the table: the queries, the servers that support them, and the expected
// reply.

import type { DigReply } from "../support/client/dig.ts";
import type { DnsperfInput } from "./dnsperf.ts";
import type { Testbed } from "./testbed.ts";
import { type Host, type Questions, reverseName } from "./questions.ts";
import { SERVERS, type Server } from "./server.ts";

export type Workload = {
  readonly row: string;
  readonly testbed: Testbed;
  readonly servers: readonly Server[];
  // dnsperf input for this many seconds.
  readonly input: (server: Server, seconds: number) => DnsperfInput;
  // A sample query as dig arguments, and the check of its reply.
  readonly question: readonly string[];
  readonly isRight: (reply: DigReply, server: Server) => boolean;
};

export const ROWS = {
  address: "container name, A",
  reverse: "container address, PTR",
  text: "container name, TXT: no data",
  noAddress: "container name, AAAA: no data",
  other: "container name, HINFO: by the process in any case",
  names: "container name of 10,000, A",
  cached: "forwarded, cache hit",
  nxdomain: "forwarded, cache hit: NXDOMAIN",
  uncached: "forwarded, cache miss",
  twoThreads: "container name, A, dnsperf with two threads",
} as const;

// The floor has one answer to everything.
const NOT_FLOOR = SERVERS.filter((server) => server !== "floor");

// dockerd's resolver forwards other types of a container's name, which its upstream does not know.
const textRcode = (server: Server) => (server === "dockerd" ? "NXDOMAIN" : "NOERROR");

export function localWorkloads(questions: Questions, testbed: Testbed, large: Testbed): Workload[] {
  const [first, last] = [firstOf(testbed.hosts), firstOf(large.hosts.slice(-1))];
  const [addresses, texts] = [questions.addresses(testbed.hosts), questions.typed(testbed.hosts, "TXT")];
  const [reverse, names] = [questions.reverse(testbed.hosts), questions.addresses(large.hosts)];
  return [
    {
      row: ROWS.address,
      testbed,
      servers: SERVERS,
      input: () => ({ file: addresses, rcode: "NOERROR" }),
      question: [first.name, "A"],
      isRight: (reply, server) => holds(reply, server === "floor" ? "192.0.2.1" : first.address),
    },
    {
      row: ROWS.reverse,
      testbed,
      servers: NOT_FLOOR,
      input: () => ({ file: reverse, rcode: "NOERROR" }),
      question: [reverseName(first.address), "PTR"],
      isRight: ({ answer }) => answer.some(({ data }) => data.startsWith(`${first.name}.`)),
    },
    {
      row: ROWS.text,
      testbed,
      servers: NOT_FLOOR,
      input: (server) => ({ file: texts, rcode: textRcode(server) }),
      question: [first.name, "TXT"],
      isRight: ({ status, answer }, server) => status === textRcode(server) && answer.length === 0,
    },
    {
      row: ROWS.names,
      testbed: large,
      servers: NOT_FLOOR,
      input: () => ({ file: names, rcode: "NOERROR" }),
      question: [last.name, "A"],
      isRight: (reply) => holds(reply, last.address),
    },
  ];
}

export function forwardedWorkloads(questions: Questions, testbed: Testbed): Workload[] {
  const [cached, nxdomain] = [questions.cached(), questions.nxdomain()];
  return [
    {
      row: ROWS.uncached,
      testbed,
      servers: NOT_FLOOR,
      input: (_server, seconds) => ({ file: questions.uncached(seconds), rcode: "NOERROR" }),
      question: ["uncached.test", "A"],
      isRight: (reply) => holds(reply, "192.0.2.1"),
    },
    {
      row: ROWS.cached,
      testbed,
      servers: NOT_FLOOR,
      input: () => ({ file: cached, rcode: "NOERROR" }),
      question: ["cached-0.test", "A"],
      isRight: (reply) => holds(reply, "192.0.2.1"),
    },
    {
      row: ROWS.nxdomain,
      testbed,
      servers: NOT_FLOOR,
      input: () => ({ file: nxdomain, rcode: "NXDOMAIN" }),
      question: ["cached-0.gone.test", "A"],
      isRight: ({ status, answer }) => status === "NXDOMAIN" && answer.length === 0,
    },
  ];
}

// What the kernel answers, and a type that it leaves to the process.
export function kernelWorkloads(questions: Questions, testbed: Testbed, large: Testbed): Workload[] {
  const withoutData = (type: string): Pick<Workload, "testbed" | "input" | "question" | "isRight"> => {
    const file = questions.typed(testbed.hosts, type);
    return {
      testbed,
      input: () => ({ file, rcode: "NOERROR" }),
      question: [firstOf(testbed.hosts).name, type],
      isRight: ({ status, answer }) => status === "NOERROR" && answer.length === 0,
    };
  };
  // aardvark-dns forwards types that it does not have.
  const known = NOT_FLOOR.filter((server) => server !== "aardvark-dns");
  return [
    ...localWorkloads(questions, testbed, large).filter(({ row }) => row !== ROWS.text),
    { row: ROWS.noAddress, servers: known, ...withoutData("AAAA") },
    { row: ROWS.other, servers: ["kernel", "process"], ...withoutData("HINFO") },
    ...forwardedWorkloads(questions, testbed).filter(({ row }) => row !== ROWS.uncached),
  ];
}

function holds({ status, answer }: DigReply, address: string): boolean {
  return status === "NOERROR" && answer.length === 1 && answer[0]?.data === address;
}

function firstOf([host]: readonly Host[]): Host {
  if (host === undefined) throw new Error("no names");
  return host;
}
