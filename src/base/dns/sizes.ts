/** Size limits of DNS messages. */

/** The limit over TCP, which has a length of two bytes. */
export const MESSAGE_BYTES_MAX = 65_535;
/** The limit over UDP for a client that announces no other size (RFC 1035, 4.2.1). */
export const UDP_BYTES_MIN = 512;
/** The largest payload of a UDP packet over IPv4. */
export const UDP_BYTES_MAX = 65_507;
