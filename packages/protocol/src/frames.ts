// Frames of a carrier: the 8-byte header (type u8, payload length u24, stream id u32, all big-endian), the frame types, and the payloads
// without visitor data. Frames are written with their header; all limits are checked when reading.
import { CAPABILITY } from './handshake.ts';
import { WIRE_LIMITS } from './limits.ts';
import { decodeTextLoosely, encodeTextCut } from './text-codec.ts';

/** Maximum size of a reason text. Longer texts are cut between two characters. */
export const RESET_REASON_MAX_BYTES = 256;

export const FRAME = {
  DATA: 1,
  OPEN: 2,
  OPENED: 3,
  REFUSED: 4,
  FIN: 5,
  RESET: 6,
  WINDOW: 7,
  PING: 8,
  PONG: 9,
  GO_AWAY: 10,
  DATAGRAM: 11,
  SEEN: 12,
  OPEN_COMPACT: 13,
} as const;

export type FrameType = (typeof FRAME)[keyof typeof FRAME];

/** Payload size of PING and PONG. PONG echoes the eight bytes of the PING. */
export const PING_PAYLOAD_BYTES = 8;

/** Payload size of OPENED and WINDOW frames: a u32. */
const CREDIT_PAYLOAD_BYTES = 4;

/** Payload size of a SEEN frame: a u64. */
const SEEN_PAYLOAD_BYTES = 8;

/** Writes a frame header at `offset`. The caller ensures room for 8 bytes and a valid length. */
export const writeFrameHeader = (
  target: Uint8Array,
  offset: number,
  type: FrameType,
  length: number,
  streamId: number,
): void => {
  target[offset] = type;
  target[offset + 1] = length >>> 16;
  target[offset + 2] = length >>> 8;
  target[offset + 3] = length;
  writeUint32(target, offset + 4, streamId);
};

export const writeUint32 = (target: Uint8Array, offset: number, value: number): void => {
  target[offset] = value >>> 24;
  target[offset + 1] = value >>> 16;
  target[offset + 2] = value >>> 8;
  target[offset + 3] = value;
};

export const readUint32 = (source: Uint8Array, offset: number): number =>
  (((source[offset] ?? 0) << 24) |
    ((source[offset + 1] ?? 0) << 16) |
    ((source[offset + 2] ?? 0) << 8) |
    (source[offset + 3] ?? 0)) >>>
  0;

/** Requirements for the header of a frame type: payload length, and whether the frame belongs to a stream or to the carrier (id 0). */
interface FrameKind {
  readonly min: number;
  readonly max: number;
  readonly of: 'stream' | 'carrier';
  /** Capability required for the frame. Undefined for frames of version 1. Without the capability, the frame is a protocol violation. */
  readonly capability?: string | undefined;
}

/** Creates all entries with the same object shape, because the parser reads them for every frame. */
const kind = (of: FrameKind['of'], min: number, max = min, capability?: string): FrameKind => ({
  min,
  max,
  of,
  capability,
});

const REASON_MAX = 4 + RESET_REASON_MAX_BYTES;

export const FRAME_KINDS: Readonly<Record<FrameType, FrameKind>> = {
  [FRAME.DATA]: kind('stream', 0, WIRE_LIMITS.FRAME_DATA_MAX_BYTES),
  [FRAME.OPEN]: kind('stream', 1, WIRE_LIMITS.FRAME_CONTROL_MAX_BYTES),
  [FRAME.OPENED]: kind('stream', CREDIT_PAYLOAD_BYTES),
  [FRAME.REFUSED]: kind('stream', 4, REASON_MAX),
  [FRAME.FIN]: kind('stream', 0),
  [FRAME.RESET]: kind('stream', 4, REASON_MAX),
  [FRAME.WINDOW]: kind('stream', CREDIT_PAYLOAD_BYTES),
  [FRAME.PING]: kind('carrier', PING_PAYLOAD_BYTES),
  [FRAME.PONG]: kind('carrier', PING_PAYLOAD_BYTES),
  [FRAME.GO_AWAY]: kind('carrier', 4, REASON_MAX),
  [FRAME.DATAGRAM]: kind('stream', 0, WIRE_LIMITS.DATAGRAM_MAX_BYTES, CAPABILITY.DATAGRAM),
  [FRAME.SEEN]: kind('carrier', SEEN_PAYLOAD_BYTES, SEEN_PAYLOAD_BYTES, CAPABILITY.DATAGRAM),
  [FRAME.OPEN_COMPACT]: kind('stream', 5, WIRE_LIMITS.FRAME_CONTROL_MAX_BYTES, CAPABILITY.COMPACT_OPEN),
};

/** Requirements for the frames of a session by frame type. Undefined for types not available in the session. */
export type FrameTable = readonly (FrameKind | undefined)[];

/** Returns the frame types available in a session with these capabilities. */
export const frameTable = (
  capabilities: readonly string[],
  kinds: Readonly<Record<number, FrameKind>> = FRAME_KINDS,
): FrameTable =>
  Array.from({ length: 1 + Math.max(...Object.keys(kinds).map(Number)) }, (_, type) => {
    const frame = kinds[type];
    return frame?.capability === undefined || capabilities.includes(frame.capability) ? frame : undefined;
  });

// ---- payloads ----

const HEADER = WIRE_LIMITS.FRAME_HEADER_BYTES;

/** Why a stream was refused or reset. The number is sent on the wire. */
export const STREAM_CODES = {
  cancelled: 0,
  'dial-refused': 1,
  'dial-timeout': 2,
  'unknown-tunnel': 3,
  'peer-reset': 4,
  limit: 5,
  'shutting-down': 6,
  'carrier-lost': 7,
  'protocol-violation': 8,
  timeout: 9,
} as const;

export type StreamCode = keyof typeof STREAM_CODES;

const NAME_OF_CODE = new Map<number, StreamCode>(
  Object.entries(STREAM_CODES).map(([name, code]) => [code, name as StreamCode]),
);

export interface StreamReason {
  readonly code: StreamCode;
  readonly text: string;
}

export const encodeFrame = (type: FrameType, streamId: number, payload: Uint8Array): Uint8Array => {
  const frame = new Uint8Array(HEADER + payload.length);
  writeFrameHeader(frame, 0, type, payload.length, streamId);
  frame.set(payload, HEADER);
  return frame;
};

/** Writes OPENED or WINDOW with a u32 credit at the start of `target`. Returns the end position. */
export const writeCredit = (
  target: Uint8Array,
  type: typeof FRAME.OPENED | typeof FRAME.WINDOW,
  streamId: number,
  bytes: number,
): number => {
  writeFrameHeader(target, 0, type, CREDIT_PAYLOAD_BYTES, streamId);
  writeUint32(target, HEADER, bytes);
  return HEADER + CREDIT_PAYLOAD_BYTES;
};

export const encodeCredit = (
  type: typeof FRAME.OPENED | typeof FRAME.WINDOW,
  streamId: number,
  bytes: number,
): Uint8Array => {
  const frame = new Uint8Array(HEADER + CREDIT_PAYLOAD_BYTES);
  writeCredit(frame, type, streamId, bytes);
  return frame;
};

export const decodeCredit = (payload: Uint8Array): number | null => {
  if (payload.length !== CREDIT_PAYLOAD_BYTES) return null;
  const bytes = readUint32(payload, 0);
  return bytes <= WIRE_LIMITS.STREAM_WINDOW_MAX_BYTES ? bytes : null;
};

export const writeFin = (target: Uint8Array, streamId: number): number => {
  writeFrameHeader(target, 0, FRAME.FIN, 0, streamId);
  return HEADER;
};

export const encodeFin = (streamId: number): Uint8Array => {
  const frame = new Uint8Array(HEADER);
  writeFin(frame, streamId);
  return frame;
};

/** Encodes REFUSED, RESET or GO_AWAY: a u32 code and a short text for people. */
export const encodeReason = (
  type: typeof FRAME.REFUSED | typeof FRAME.RESET | typeof FRAME.GO_AWAY,
  streamId: number,
  reason: StreamReason,
): Uint8Array => {
  const text = encodeTextCut(reason.text, RESET_REASON_MAX_BYTES);
  const payload = new Uint8Array(4 + text.length);
  writeUint32(payload, 0, STREAM_CODES[reason.code]);
  payload.set(text, 4);
  return encodeFrame(type, streamId, payload);
};

/** Decodes a reason. Unknown codes are mapped to 'cancelled', so that newer peers can add codes. */
export const decodeReason = (payload: Uint8Array): StreamReason | null => {
  if (payload.length < 4 || payload.length > 4 + RESET_REASON_MAX_BYTES) return null;
  return {
    code: NAME_OF_CODE.get(readUint32(payload, 0)) ?? 'cancelled',
    text: decodeTextLoosely(payload.subarray(4)),
  };
};

/** Writes PING or PONG with two u32 values at the start of `target`. Returns the end position. */
export const writePing = (
  target: Uint8Array,
  type: typeof FRAME.PING | typeof FRAME.PONG,
  first: number,
  second: number,
): number => {
  writeFrameHeader(target, 0, type, PING_PAYLOAD_BYTES, 0);
  writeUint32(target, HEADER, first);
  writeUint32(target, HEADER + 4, second);
  return HEADER + PING_PAYLOAD_BYTES;
};

/** Encodes PING or PONG with eight bytes chosen by the sender, padded with zeros. */
export const encodePing = (type: typeof FRAME.PING | typeof FRAME.PONG, payload: Uint8Array): Uint8Array => {
  const bytes = new Uint8Array(PING_PAYLOAD_BYTES);
  bytes.set(payload.subarray(0, PING_PAYLOAD_BYTES));
  const frame = new Uint8Array(HEADER + PING_PAYLOAD_BYTES);
  writePing(frame, type, readUint32(bytes, 0), readUint32(bytes, 4));
  return frame;
};

/** Encodes SEEN: the total bytes of DATAGRAM frames, including headers, taken from the carrier since it opened. */
export const encodeSeen = (takenBytes: number): Uint8Array => {
  const payload = new Uint8Array(SEEN_PAYLOAD_BYTES);
  writeUint32(payload, 0, Math.floor(takenBytes / 2 ** 32));
  writeUint32(payload, 4, takenBytes % 2 ** 32);
  return encodeFrame(FRAME.SEEN, 0, payload);
};

/** Decodes the payload of a SEEN frame. Returns null if the value is too large to be real. */
export const decodeSeen = (payload: Uint8Array): number | null => {
  if (payload.length !== SEEN_PAYLOAD_BYTES) return null;
  const bytes = readUint32(payload, 0) * 2 ** 32 + readUint32(payload, 4);
  return Number.isSafeInteger(bytes) ? bytes : null;
};
