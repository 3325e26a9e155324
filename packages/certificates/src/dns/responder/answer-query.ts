// Answers a DNS message. A message that is not a single plain query is dropped. Responses are never answered, so that two servers cannot
// loop.
import packet, { type Answer, type DecodedPacket, type Packet, type Question } from 'dns-packet';
import { DNS_LIMITS } from '../dns-limits.ts';
import type { ChallengeZone } from './challenge-zone.ts';

/** Maximum size of an answer over UDP. Resolvers repeat the query over TCP for a longer answer. */
const UDP_ANSWER_MAX_BYTES = 512;

export type QueryOutcome =
  | { readonly kind: 'answered'; readonly bytes: Buffer }
  | { readonly kind: 'refused'; readonly bytes: Buffer }
  | { readonly kind: 'malformed' };

interface Query {
  readonly id: number;
  readonly opcode: number;
  /** EDNS version of the DNS query, or null without EDNS. */
  readonly edns: number | null;
  /** The recursion-desired flag of the DNS query, which is echoed but never honored. */
  readonly flags: number;
  readonly question: Question;
}

const HEADER_BYTES = 12;
const RCODE = { NOERROR: 0, NOTIMP: 4, REFUSED: 5 } as const;
const BAD_VERSION = 1;
const QUERY_OPCODE = 0;
const MALFORMED: QueryOutcome = { kind: 'malformed' };

/** `isShort` omits the authority section, so that the answer is hardly longer than the query. */
export const answerQuery = (bytes: Buffer, zone: ChallengeZone, over: 'udp' | 'tcp', isShort = false): QueryOutcome => {
  try {
    const query = readQuery(bytes);
    return query === null ? MALFORMED : answered(query, zone, over, isShort);
  } catch {
    // The DNS parser throws on malformed messages.
    return MALFORMED;
  }
};

/** Returns null for a message that cannot be answered. The counts are checked first, because they determine the amount of parsing. */
const readQuery = (bytes: Buffer): Query | null => {
  if (bytes.length < HEADER_BYTES || bytes.length > DNS_LIMITS.QUERY_MAX_BYTES) return null;
  const flags = bytes.readUInt16BE(2);
  const isResponse = (flags & 0x8000) !== 0;
  const [questions, answers, authorities, additionals] = [4, 6, 8, 10].map((at) => bytes.readUInt16BE(at));
  if (isResponse || questions !== 1 || answers !== 0 || authorities !== 0 || (additionals ?? 0) > 2) return null;
  const decoded = packet.decode(bytes);
  const [question] = decoded.questions ?? [];
  if (question === undefined || !isPlainName(question.name) || question.class?.startsWith('UNKNOWN') === true)
    return null;
  return {
    id: bytes.readUInt16BE(0),
    opcode: (flags >> 11) & 0xf,
    edns: ednsVersion(decoded),
    flags: flags & packet.RECURSION_DESIRED,
    question,
  };
};

/** Printable names only, so that a name is echoed exactly. The parser joins labels with dots, so a dot inside a label would be lost. */
const isPlainName = (name: string): boolean =>
  /^[\x21-\x7e]+$/.test(name) && (name === '.' || name.split('.').every(({ length }) => length > 0 && length <= 63));

const ednsVersion = ({ additionals = [] }: DecodedPacket): number | null => {
  const opt = additionals.find(({ type }) => type === 'OPT');
  return opt !== undefined && 'ednsVersion' in opt ? opt.ednsVersion : null;
};

const answered = (query: Query, zone: ChallengeZone, over: 'udp' | 'tcp', isShort: boolean): QueryOutcome => {
  if (query.opcode !== QUERY_OPCODE) return { kind: 'refused', bytes: encode(query, RCODE.NOTIMP) };
  if (query.edns !== null && query.edns > 0) {
    return { kind: 'refused', bytes: encode(query, RCODE.NOERROR, { extendedRcode: BAD_VERSION }) };
  }
  const { rcode, answers, authorities } = zone.answer(query.question);
  if (rcode === 'REFUSED') return { kind: 'refused', bytes: encode(query, RCODE.REFUSED) };
  const content = { answers, authorities: isShort ? [] : authorities, flags: packet.AUTHORITATIVE_ANSWER };
  const bytes = encode(query, RCODE.NOERROR, content);
  if (over === 'tcp' || bytes.length <= UDP_ANSWER_MAX_BYTES) return { kind: 'answered', bytes };
  const flags = packet.AUTHORITATIVE_ANSWER | packet.TRUNCATED_RESPONSE;
  return { kind: 'answered', bytes: encode(query, RCODE.NOERROR, { flags }) };
};

interface Content {
  readonly answers?: readonly Answer[];
  readonly authorities?: readonly Answer[];
  readonly flags?: number;
  readonly extendedRcode?: number;
}

const encode = (query: Query, rcode: number, content: Content = {}): Buffer => {
  const { answers = [], authorities = [], flags = 0, extendedRcode = 0 } = content;
  const opcode = query.opcode << 11;
  const message: Packet = {
    type: 'response',
    id: query.id,
    flags: query.flags | opcode | flags | rcode,
    questions: [query.question],
    answers: [...answers],
    authorities: [...authorities],
    additionals: query.edns === null ? [] : [optOf(extendedRcode)],
  };
  return withPointers(packet.encode(message), query.question.name, [...answers, ...authorities]);
};

const POINTER = 0xc000;
const RECORD_HEAD_BYTES = 10;

/** Length of a name on the wire: labels with length bytes, and an empty label at the end. */
const bytesOfName = (name: string): number => (name === '.' ? 1 : name.length + 2);

/** Compresses the owner names of records to pointers, because they equal or end the queried name. The library writes them in full. */
const withPointers = (bytes: Buffer, asked: string, records: readonly { readonly name: string }[]): Buffer => {
  let at = HEADER_BYTES + bytesOfName(asked) + 4;
  const parts = [bytes.subarray(0, at)];
  for (const { name } of records) {
    const head = at + bytesOfName(name);
    const end = head + RECORD_HEAD_BYTES + bytes.readUInt16BE(head + RECORD_HEAD_BYTES - 2);
    parts.push(pointerTo(name, asked) ?? bytes.subarray(at, head), bytes.subarray(head, end));
    at = end;
  }
  return Buffer.concat([...parts, bytes.subarray(at)]);
};

/** Returns null if the name is not a suffix of the queried name. */
const pointerTo = (name: string, asked: string): Buffer | null => {
  if (name === '.' || !`.${asked.toLowerCase()}`.endsWith(`.${name.toLowerCase()}`)) return null;
  const pointer = Buffer.alloc(2);
  pointer.writeUInt16BE(POINTER | (HEADER_BYTES + asked.length - name.length));
  return pointer;
};

const optOf = (extendedRcode: number): Answer => ({
  type: 'OPT',
  name: '.',
  udpPayloadSize: UDP_ANSWER_MAX_BYTES,
  extendedRcode,
  ednsVersion: 0,
  flags: 0,
  flag_do: false,
  options: [],
});
