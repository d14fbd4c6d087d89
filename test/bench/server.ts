// Names of the measured servers in print order: dns11, dockerd, the other name servers, and the floor, which does the
// minimum work.

export const SERVERS = ["dns11", "dockerd", "dnsmasq", "unbound", "aardvark-dns", "floor"] as const;

export type Server = (typeof SERVERS)[number];
