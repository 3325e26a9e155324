// DNS resolver for tests, on loopback over UDP and TCP. Serves records set by a test, follows CNAMEs, delegates zones to other servers,
// and fails on command.
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import packet, { type Answer, type DecodedPacket, type Packet, type Question } from 'dns-packet';
import { startTcpServer } from './tcp-servers.ts';

export type DnsRecordType = 'A' | 'AAAA' | 'CNAME' | 'TXT' | 'NS' | 'SOA';

/** Value of a DNS record. For TXT, a list is one record with several strings; a text above 255 bytes is split into several strings. */
export type DnsRecordValue = string | readonly string[];

export type DnsFault =
  | 'servfail'
  | 'refused'
  /** The DNS test server sends no response. */
  | 'silent'
  /** Over UDP, sends an empty response with the truncation flag. Over TCP, closes the connection. */
  | 'truncated'
  /** The DNS test server sends bytes that are not a DNS message. */
  | 'garbage'
  /** The DNS test server sends a response with the id of a different query. */
  | 'other-id'
  | { readonly slowMs: number };

export interface DnsServer {
  readonly host: string;
  /** Port number, the same for UDP and TCP. */
  readonly port: number;
  /** Address for the setting `[dns] resolvers`, such as `127.0.0.1:5353`. */
  readonly address: string;
  /** Queries received so far, in order. Names are in lower case. */
  readonly asked: readonly { readonly name: string; readonly type: string; readonly over: 'udp' | 'tcp' }[];
  /** Replaces the records of a name and type. `*.NAME` applies to every name below NAME without records. */
  set(name: string, type: DnsRecordType, ...values: DnsRecordValue[]): void;
  /** Removes the records of a name. Default: records of all types. */
  remove(name: string, type?: DnsRecordType): void;
  /** Delegates a zone and the names below to a different server, like an NS record. Null ends the delegation. */
  delegate(zone: string, to: { readonly host: string; readonly port: number } | null): void;
  /** Injects a fault for a name, or for all names with `*`. Null removes the fault. */
  fail(name: string, fault: DnsFault | null): void;
  close(): Promise<void>;
}

const UDP_PLAIN_BYTES = 512;
const CHAIN_MAX = 16;
const FORWARD_TIMEOUT_MS = 2000;
const RCODES = { NOERROR: 0, SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 } as const;

interface Outcome {
  readonly rcode: number;
  readonly answers: Answer[];
  readonly authorities?: Answer[];
}

const fold = (name: string): string => name.toLowerCase().replace(/\.$/, '');
const isBelow = (name: string, zone: string): boolean => name === zone || name.endsWith(`.${zone}`);

class Records {
  readonly #byName = new Map<string, Map<DnsRecordType, readonly DnsRecordValue[]>>();

  set(name: string, type: DnsRecordType, values: readonly DnsRecordValue[]): void {
    const types = this.#byName.get(fold(name)) ?? new Map<DnsRecordType, readonly DnsRecordValue[]>();
    this.#byName.set(fold(name), types.set(type, values));
  }

  remove(name: string, type?: DnsRecordType): void {
    const types = this.#byName.get(fold(name));
    if (type !== undefined) types?.delete(type);
    if (type === undefined || types?.size === 0) this.#byName.delete(fold(name));
  }

  /** Finds the records of a name. Returns undefined if the name does not exist. */
  at(name: string): ReadonlyMap<DnsRecordType, readonly DnsRecordValue[]> | undefined {
    const own = this.#byName.get(name);
    if (own !== undefined) return own;
    if ([...this.#byName.keys()].some((other) => other.endsWith(`.${name}`))) return new Map();
    for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1)) {
      const parent = name.slice(dot + 1);
      const wildcard = this.#byName.get(`*.${parent}`);
      if (wildcard !== undefined) return wildcard;
      // A wildcard does not apply below an existing name that is closer to the queried name (RFC 4592).
      if (this.#byName.has(parent)) return undefined;
    }
    return undefined;
  }
}

const textPieces = (value: DnsRecordValue): Buffer[] => {
  if (typeof value !== 'string') return value.map((piece) => Buffer.from(piece));
  const bytes = Buffer.from(value);
  const count = Math.max(1, Math.ceil(bytes.length / 255));
  return Array.from({ length: count }, (_, index) => bytes.subarray(index * 255, (index + 1) * 255));
};

const answerOf = (name: string, type: DnsRecordType, value: DnsRecordValue): Answer => {
  if (type === 'TXT') return { name, type, ttl: 1, data: textPieces(value) };
  const data = String(value);
  if (type === 'SOA') return { name, type, ttl: 1, data: { mname: data, rname: `hostmaster.${data}`, minimum: 1 } };
  return { name, type, ttl: 1, data };
};

export interface DnsServerOptions {
  /** Address of the server. Default: 127.0.0.1. Other addresses are for network namespaces of a test. */
  readonly host?: string;
  /** Port for UDP and TCP. Default: any free port. */
  readonly port?: number;
}

export const startDnsServer = async ({ host = '127.0.0.1', port = 0 }: DnsServerOptions = {}): Promise<DnsServer> => {
  const records = new Records();
  const zones = new Map<string, { readonly host: string; readonly port: number }>();
  const faults = new Map<string, DnsFault>();
  const asked: { name: string; type: string; over: 'udp' | 'tcp' }[] = [];
  const closing = new AbortController();

  const resolve = async (question: Question): Promise<Outcome> => {
    const answers: Answer[] = [];
    let name = question.name;
    for (let step = 0; step < CHAIN_MAX; step += 1) {
      const zone = [...zones.keys()].find((one) => isBelow(fold(name), one));
      if (zone !== undefined) {
        const reply = await forward(zones.get(zone) as { host: string; port: number }, { ...question, name });
        if (reply === null) return { rcode: RCODES.SERVFAIL, answers };
        const { answers: found = [], authorities = [] } = reply;
        return { rcode: rcodeOf(reply), answers: [...answers, ...found], authorities };
      }
      const here = records.at(fold(name));
      if (here === undefined) return { rcode: RCODES.NXDOMAIN, answers };
      const type = question.type as DnsRecordType;
      const cname = here.get('CNAME')?.[0];
      for (const value of here.get(type) ?? []) answers.push(answerOf(name, type, value));
      if (type === 'CNAME' || cname === undefined) return { rcode: RCODES.NOERROR, answers };
      answers.push(answerOf(name, 'CNAME', cname));
      name = String(cname);
    }
    return { rcode: RCODES.SERVFAIL, answers };
  };

  /** Makes the response to a query. Returns null to send no response, which can be a fault on command. */
  const reply = async (bytes: Buffer, over: 'udp' | 'tcp'): Promise<Buffer | null> => {
    const query = packet.decode(bytes);
    const question = query.questions?.[0];
    if (question === undefined) return null;
    const name = fold(question.name);
    asked.push({ name, type: question.type, over });
    const fault = faults.get(name) ?? faults.get('*');
    if (fault === 'silent' || (fault === 'truncated' && over === 'tcp')) return null;
    if (fault === 'garbage') return Buffer.alloc(40, 0xff);
    if (typeof fault === 'object') await pause(fault.slowMs, undefined, { signal: closing.signal });
    const outcome = await outcomeOf(fault, question);
    const { rcode, answers, authorities = [] } = outcome;
    const id = fault === 'other-id' ? ((query.id ?? 0) + 1) & 0xffff : (query.id ?? 0);
    const flags = packet.RECURSION_DESIRED | packet.RECURSION_AVAILABLE | rcode;
    const whole: Packet = { type: 'response', id, flags, questions: [question], answers, authorities };
    const encoded = packet.encode(whole);
    const room = over === 'tcp' ? 0xffff : udpRoom(query);
    if (encoded.length <= room && fault !== 'truncated') return encoded;
    return packet.encode({
      type: 'response',
      id,
      flags: flags | packet.TRUNCATED_RESPONSE,
      questions: [question],
    });
  };

  const outcomeOf = (fault: DnsFault | undefined, question: Question): Promise<Outcome> => {
    if (fault === 'servfail') return Promise.resolve({ rcode: RCODES.SERVFAIL, answers: [] });
    if (fault === 'refused') return Promise.resolve({ rcode: RCODES.REFUSED, answers: [] });
    return resolve(question);
  };

  const { udp, tcp } = await openBoth(host, port, reply);
  return {
    host,
    port: tcp.port,
    address: `${host}:${tcp.port}`,
    asked,
    set: (name, type, ...values) => records.set(name, type, values),
    remove: (name, type) => records.remove(name, type),
    delegate: (zone, to) => void (to === null ? zones.delete(fold(zone)) : zones.set(fold(zone), to)),
    fail: (name, fault) => void (fault === null ? faults.delete(fold(name)) : faults.set(fold(name), fault)),
    close: async () => {
      closing.abort();
      await Promise.all([tcp.close(), new Promise<void>((done) => udp.close(done))]);
    },
  };
};

const rcodeOf = (message: DecodedPacket): number => (message.flags ?? 0) & 0xf;

/** Maximum size of a UDP response, as announced by the client (EDNS). */
const udpRoom = (query: DecodedPacket): number => {
  const opt = query.additionals?.find(({ type }) => type === 'OPT');
  const size = opt !== undefined && 'udpPayloadSize' in opt ? opt.udpPayloadSize : UDP_PLAIN_BYTES;
  return Math.max(UDP_PLAIN_BYTES, size);
};

type Reply = (bytes: Buffer, over: 'udp' | 'tcp') => Promise<Buffer | null>;

const openBoth = async (host: string, port: number, reply: Reply) => {
  for (;;) {
    const tcp = await startTcpServer((socket) => serveTcp(socket, reply), { host, port });
    const udp = createSocket('udp4');
    udp.on('message', (bytes, from) => {
      reply(bytes, 'udp')
        .then((answer) => answer !== null && udp.send(answer, from.port, from.address))
        // The DNS query cannot be decoded, or the test has ended and closed the socket.
        .catch(() => {});
    });
    try {
      await bind(udp, host, tcp.port);
      return { udp, tcp };
    } catch (error) {
      await tcp.close();
      if (port !== 0) throw error;
      // A different program uses the same port number over UDP, so another free port is tried.
    }
  }
};

const bind = (udp: UdpSocket, host: string, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    udp.once('error', reject);
    udp.bind(port, host, () => {
      udp.off('error', reject);
      udp.on('error', () => {});
      resolve();
    });
  });

const serveTcp = (socket: Socket, reply: Reply): void => {
  let pending: Buffer = Buffer.alloc(0);
  socket.on('end', () => socket.end());
  socket.on('data', (chunk) => {
    pending = Buffer.concat([pending, chunk]);
    while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
      const length = pending.readUInt16BE(0);
      const message = pending.subarray(2, 2 + length);
      pending = pending.subarray(2 + length);
      reply(message, 'tcp').then(
        (answer) => (answer === null ? socket.destroy() : socket.write(framed(answer))),
        () => socket.destroy(),
      );
    }
  });
};

const framed = (message: Buffer): Buffer => {
  const head = Buffer.alloc(2);
  head.writeUInt16BE(message.length);
  return Buffer.concat([head, message]);
};

/**
 * Forwards a query to the server of a delegated zone: over UDP, and over TCP if the response is truncated. Resolves with null without a
 * response.
 */
const forward = async (
  to: { readonly host: string; readonly port: number },
  question: Question,
): Promise<DecodedPacket | null> => {
  const id = Math.floor(Math.random() * 0x1_0000);
  const query = packet.encode({ type: 'query', id, flags: 0, questions: [question] });
  const first = await askOverUdp(to, query);
  return first?.flag_tc === true ? askOverTcp(to, query) : first;
};

const askOverUdp = (to: { host: string; port: number }, query: Buffer): Promise<DecodedPacket | null> =>
  new Promise((resolve) => {
    const socket = createSocket(to.host.includes(':') ? 'udp6' : 'udp4');
    const end = (answer: DecodedPacket | null): void => {
      clearTimeout(timer);
      socket.removeAllListeners('message').close();
      resolve(answer);
    };
    const timer = setTimeout(() => end(null), FORWARD_TIMEOUT_MS);
    socket.once('error', () => end(null));
    socket.once('message', (bytes) => end(packet.decode(bytes)));
    socket.send(query, to.port, to.host);
  });

const askOverTcp = (to: { host: string; port: number }, query: Buffer): Promise<DecodedPacket | null> =>
  new Promise((resolve) => {
    const socket = connect(to);
    let pending: Buffer = Buffer.alloc(0);
    const end = (answer: DecodedPacket | null): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(FORWARD_TIMEOUT_MS, () => end(null));
    socket.once('error', () => end(null));
    socket.once('end', () => end(null));
    socket.on('data', (chunk) => {
      pending = Buffer.concat([pending, chunk]);
      if (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) end(packet.decode(pending.subarray(2)));
    });
    socket.write(framed(query));
  });
