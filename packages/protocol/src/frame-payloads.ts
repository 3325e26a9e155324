// The payloads of the frames that are not DATA: written whole with their header, read with every bound checked.
import {
  FRAME,
  type FrameType,
  PING_PAYLOAD_BYTES,
  readUint32,
  writeFrameHeader,
  writeUint32,
} from './frame-header.ts';
import { WIRE_LIMITS } from './limits.ts';
import { cutText, decodeText, decodeTextLoosely, encodeText, encodeTextCut } from './text-codec.ts';

const HEADER = WIRE_LIMITS.FRAME_HEADER_BYTES;

/** What the opener says of a new stream. */
export interface StreamHead {
  readonly tunnelId: string;
  /** host:port of the visitor. */
  readonly visitor: string;
}

/** Why a stream was refused or reset; the number is on the wire. */
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

const frameOf = (type: FrameType, streamId: number, payload: Uint8Array): Uint8Array => {
  const frame = new Uint8Array(HEADER + payload.length);
  writeFrameHeader(frame, 0, type, payload.length, streamId);
  frame.set(payload, HEADER);
  return frame;
};

export const encodeOpen = (streamId: number, head: StreamHead, windowBytes: number): Uint8Array => {
  const visitor = cutText(head.visitor, WIRE_LIMITS.OPEN_VISITOR_MAX_CHARS);
  return frameOf(
    FRAME.OPEN,
    streamId,
    encodeText(JSON.stringify({ tunnel_id: head.tunnelId, visitor, window: windowBytes })),
  );
};

export interface OpenPayload {
  readonly head: StreamHead;
  readonly windowBytes: number;
}

export const decodeOpen = (payload: Uint8Array): OpenPayload | null => {
  const text = decodeText(payload);
  if (text === null) return null;
  const value = parseJson(text);
  if (typeof value !== 'object' || value === null) return null;
  const { tunnel_id, visitor, window } = value as Record<string, unknown>;
  if (!isTunnelId(tunnel_id) || !isVisitor(visitor) || !isWindow(window)) return null;
  return { head: { tunnelId: tunnel_id, visitor }, windowBytes: window };
};

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};

const isTunnelId = (value: unknown): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= WIRE_LIMITS.OPEN_TUNNEL_ID_MAX_CHARS;

const isVisitor = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= WIRE_LIMITS.OPEN_VISITOR_MAX_CHARS;

const isWindow = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= WIRE_LIMITS.STREAM_WINDOW_MAX_BYTES;

/** OPENED and WINDOW carry one u32: the first credit, and more of it. */
export const encodeCredit = (
  type: typeof FRAME.OPENED | typeof FRAME.WINDOW,
  streamId: number,
  bytes: number,
): Uint8Array => {
  const payload = new Uint8Array(4);
  writeUint32(payload, 0, bytes);
  return frameOf(type, streamId, payload);
};

export const decodeCredit = (payload: Uint8Array): number | null => {
  if (payload.length !== 4) return null;
  const bytes = readUint32(payload, 0);
  return bytes <= WIRE_LIMITS.STREAM_WINDOW_MAX_BYTES ? bytes : null;
};

export const encodeFin = (streamId: number): Uint8Array => frameOf(FRAME.FIN, streamId, new Uint8Array(0));

/** REFUSED, RESET and GO_AWAY carry a u32 code and a short text for people. */
export const encodeReason = (
  type: typeof FRAME.REFUSED | typeof FRAME.RESET | typeof FRAME.GO_AWAY,
  streamId: number,
  reason: StreamReason,
): Uint8Array => {
  const text = encodeTextCut(reason.text, WIRE_LIMITS.RESET_REASON_MAX_BYTES);
  const payload = new Uint8Array(4 + text.length);
  writeUint32(payload, 0, STREAM_CODES[reason.code]);
  payload.set(text, 4);
  return frameOf(type, streamId, payload);
};

/** An unknown code is kept as its nearest meaning, so that a newer peer can say more. */
export const decodeReason = (payload: Uint8Array): StreamReason | null => {
  if (payload.length < 4 || payload.length > 4 + WIRE_LIMITS.RESET_REASON_MAX_BYTES) return null;
  return {
    code: NAME_OF_CODE.get(readUint32(payload, 0)) ?? 'cancelled',
    text: decodeTextLoosely(payload.subarray(4)),
  };
};

/** Eight bytes of the sender's choice, padded with zeros when fewer are given. */
export const encodePing = (type: typeof FRAME.PING | typeof FRAME.PONG, payload: Uint8Array): Uint8Array => {
  const bytes = new Uint8Array(PING_PAYLOAD_BYTES);
  bytes.set(payload.subarray(0, PING_PAYLOAD_BYTES));
  return frameOf(type, 0, bytes);
};
