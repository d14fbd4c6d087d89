// Owns the names of those that are measured, in the order in which they are printed: dns11 first, then dockerd, then the
// name servers beside them, and last a floor that does as little as can be done.

export const SERVERS = ["dns11", "dockerd", "dnsmasq", "unbound", "aardvark-dns", "floor"] as const;

export type Server = (typeof SERVERS)[number];
