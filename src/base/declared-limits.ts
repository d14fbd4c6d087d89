/**
 * Limits of what people declare, in records and labels, as part of `LIMITS`.
 */
export const DECLARED_LIMITS = {
  /**
   * Declared names in all files, records of each, and CNAMEs followed from one name to the next. A file with more is
   * refused, and the names of the file before it stay. A name takes 1 KB.
   */
  declaredNames: 100_000,
  declaredRecords: 100,
  declaredAliases: 8,
  /**
   * Files in the folder of records, and bytes of each; a folder with more, or a larger file, is refused. Of its mistakes
   * the first are logged and shown.
   */
  recordsFiles: 256,
  recordsProblems: 20,
  recordsFileBytes: 8 * 1024 * 1024,
  /**
   * Domains with servers of their own in a dnsmasq folder, and in a ConfigMap of kube-dns: every forwarded query is
   * matched with them. A folder with more is refused.
   */
  dnsmasqDomains: 256,

  /**
   * Domains, servers and characters in the label io.dns11.dns of one container. Each container has its own routing
   * table, which every forwarded query is matched with. The rest of a longer label is ignored and reported.
   */
  labelDomains: 64,
  labelServers: 16,
  /** Names in the label io.dns11.names, and wildcards among the aliases of an endpoint; the rest is ignored and reported. */
  labelNames: 64,
  /** Ports in the label io.dns11.ports, published ports, and exposed ports of one container; the rest is ignored. */
  labelPorts: 32,
  labelChars: 4_096,
  /**
   * Containers in one answer from a zone, more than a bridge has room for names in a UDP reply. Wildcards would
   * otherwise make every query as expensive as there are containers.
   */
  zoneAnswerMembers: 256,
  /** Services, and containers in them, that are visited for a query of a zone; the rest is left out. */
  zoneVisits: 2_048,
  /** Members of one other machine in an answer, so that no machine fills it alone. */
  machineAnswerMembers: 64,
  /** Of a service, the ways to members of one other machine that are visited for an answer: five to each of so many. */
  machineVisits: 320,
  /** Containers with one address: of those that other machines publish, any number may claim it. */
  zoneAddressMembers: 16,
  /**
   * Containers that are not running and are known, and whose names stay local. Of more those that ended first are forgotten, and their
   * names are forwarded, as in Docker.
   */
  stoppedContainers: 256,
  /** Objects of a store that are left out and whose problem is known; all are counted. */
  keyProblems: 1_024,
  /** Characters shown of a label; and of its problems. */
  labelCharsShown: 80,
  labelProblemChars: 240,
} as const;
