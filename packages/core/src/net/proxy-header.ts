// The header of the PROXY protocol, version 2, for datagrams: who the visitor is and which public address it reached, in bytes that
// stand before the first payload of a flow (haproxy's proxy-protocol.txt, section 2.2).
import ipaddr from 'ipaddr.js';

const SIGNATURE = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a];
/** Version 2, command PROXY: somebody else's datagram is passed on. */
const PROXY = 0x21;
/** Address family and DGRAM in one byte. */
const UNKNOWN = 0x00;
const OVER_IPV4 = 0x12;
const OVER_IPV6 = 0x22;
const IPV4_BYTES = 4;
const IPV6_BYTES = 16;

export interface SocketAddress {
  /** An IP address, or a name that stands for one. */
  readonly host: string;
  readonly port: number;
}

/** The other way round of hostPort(); null: it is neither `1.2.3.4:5` nor `[::1]:5` nor `name:5`. */
export const readHostPort = (text: string): SocketAddress | null => {
  const [, bracketed, plain, digits = ''] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  return host === undefined || port > 65_535 ? null : { host, port };
};

/** `reached` by a name has no address here: its port is told, with an address of zeros. A visitor that cannot be read is told as unknown. */
export const proxyHeader = (visitor: SocketAddress | null, reached: SocketAddress): Uint8Array => {
  const source = visitor === null ? null : bytesOf(visitor.host);
  if (visitor === null || source === null) return new Uint8Array([...SIGNATURE, PROXY, UNKNOWN, 0, 0]);
  const target = bytesOf(reached.host) ?? source.map(() => 0);
  // One family for both: an IPv4 address has a form in the other.
  const isIpv4 = source.length === IPV4_BYTES && target.length === IPV4_BYTES;
  const addresses = isIpv4 ? [...source, ...target] : [...asIpv6(source), ...asIpv6(target)];
  const body = [...addresses, ...portBytes(visitor.port), ...portBytes(reached.port)];
  return new Uint8Array([...SIGNATURE, PROXY, isIpv4 ? OVER_IPV4 : OVER_IPV6, 0, body.length, ...body]);
};

const bytesOf = (host: string): number[] | null => {
  const [address = ''] = host.split('%');
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) return ipaddr.IPv4.parse(address).toByteArray();
  return address.includes(':') && ipaddr.IPv6.isValid(address) ? ipaddr.IPv6.parse(address).toByteArray() : null;
};

const asIpv6 = (bytes: readonly number[]): readonly number[] =>
  bytes.length === IPV6_BYTES ? bytes : [...new Array<number>(10).fill(0), 0xff, 0xff, ...bytes];

const portBytes = (port: number): number[] => [port >> 8, port & 0xff];
