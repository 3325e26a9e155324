// The PROXY protocol header, which precedes the first payload of a connection or flow and contains the addresses of the visitor and of the
// public endpoint (haproxy's proxy-protocol.txt: version 1 in section 2.1, version 2 in 2.2).
import ipaddr from 'ipaddr.js';

const SIGNATURE = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a];
/** Command byte of a PROXY protocol version 2 header: the connection is relayed for another peer. */
const PROXY = 0x21;
/** Byte of a PROXY protocol header with the address family in the upper four bits and the transport in the lower. */
const UNKNOWN = 0x00;
const OVER_IPV4 = 0x10;
const OVER_IPV6 = 0x20;
const TRANSPORT = { tcp: 0x01, udp: 0x02 } as const;
const IPV4_BYTES = 4;
const IPV6_BYTES = 16;

export interface SocketAddress {
  /** An IP address or a host name. */
  readonly host: string;
  readonly port: number;
}

/** Inverse of hostPort(). Returns null unless the text is `1.2.3.4:5`, `[::1]:5` or `name:5`. */
export const readHostPort = (text: string): SocketAddress | null => {
  const [, bracketed, plain, digits = ''] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  return host === undefined || port > 65_535 ? null : { host, port };
};

interface Addresses {
  readonly isIpv4: boolean;
  readonly source: readonly number[];
  readonly target: readonly number[];
  readonly sourcePort: number;
  readonly targetPort: number;
}

/**
 * `reached` may be a name without an address: then only its port is sent, with a zero address. Returns null if the visitor's address is
 * invalid.
 */
const addressesOf = (visitor: SocketAddress | null, reached: SocketAddress): Addresses | null => {
  const source = visitor === null ? null : bytesOf(visitor.host);
  if (visitor === null || source === null) return null;
  const target = bytesOf(reached.host) ?? source.map(() => 0);
  const ports = { sourcePort: visitor.port, targetPort: reached.port };
  // Both addresses in a PROXY header must have the same family, so IPv4 is mapped to IPv6 if needed.
  const isIpv4 = source.length === IPV4_BYTES && target.length === IPV4_BYTES;
  return isIpv4
    ? { isIpv4, source, target, ...ports }
    : { isIpv4, source: asIpv6(source), target: asIpv6(target), ...ports };
};

/** Version 2 header. A visitor with an invalid address is sent as unknown. */
export const proxyHeader = (
  visitor: SocketAddress | null,
  reached: SocketAddress,
  transport: keyof typeof TRANSPORT = 'udp',
): Uint8Array => {
  const addresses = addressesOf(visitor, reached);
  if (addresses === null) return new Uint8Array([...SIGNATURE, PROXY, UNKNOWN, 0, 0]);
  const { isIpv4, source, target, sourcePort, targetPort } = addresses;
  const body = [...source, ...target, ...portBytes(sourcePort), ...portBytes(targetPort)];
  const family = (isIpv4 ? OVER_IPV4 : OVER_IPV6) | TRANSPORT[transport];
  return new Uint8Array([...SIGNATURE, PROXY, family, 0, body.length, ...body]);
};

/** Returns a PROXY protocol version 1 header: an ASCII line, only for TCP. */
export const proxyLine = (visitor: SocketAddress | null, reached: SocketAddress): string => {
  const addresses = addressesOf(visitor, reached);
  if (addresses === null) return 'PROXY UNKNOWN\r\n';
  const { isIpv4, source, target, sourcePort, targetPort } = addresses;
  const text = (bytes: readonly number[]): string => ipaddr.fromByteArray([...bytes]).toString();
  return `PROXY ${isIpv4 ? 'TCP4' : 'TCP6'} ${text(source)} ${text(target)} ${sourcePort} ${targetPort}\r\n`;
};

const bytesOf = (host: string): number[] | null => {
  const [address = ''] = host.split('%');
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) return ipaddr.IPv4.parse(address).toByteArray();
  return address.includes(':') && ipaddr.IPv6.isValid(address) ? ipaddr.IPv6.parse(address).toByteArray() : null;
};

const asIpv6 = (bytes: readonly number[]): readonly number[] =>
  bytes.length === IPV6_BYTES ? bytes : [...new Array<number>(10).fill(0), 0xff, 0xff, ...bytes];

const portBytes = (port: number): number[] => [port >> 8, port & 0xff];
