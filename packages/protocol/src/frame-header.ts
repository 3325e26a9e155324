// The 8-byte frame header: type (u8), payload length (u24), stream id (u32), all big-endian.
import { WIRE_LIMITS } from './limits.ts';

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
} as const;

export type FrameType = (typeof FRAME)[keyof typeof FRAME];

/** PING carries eight bytes of the sender's choice; PONG brings them back. */
export const PING_PAYLOAD_BYTES = 8;

/** Writes the header at `offset`; the caller has checked that 8 bytes are there and that the length fits. */
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

/** What a header of this type must say: the payload's length, and whether it belongs to a stream or to the carrier (id 0). */
interface FrameKind {
  readonly min: number;
  readonly max: number;
  readonly of: 'stream' | 'carrier';
  /** A frame of version 1 has none; any other is a violation unless both sides agreed on this one. */
  readonly capability?: string;
}

const CREDIT = { min: 4, max: 4 };
const REASON = { min: 4, max: 4 + WIRE_LIMITS.RESET_REASON_MAX_BYTES };
const PING = { min: PING_PAYLOAD_BYTES, max: PING_PAYLOAD_BYTES };

export const FRAME_KINDS: Readonly<Record<FrameType, FrameKind>> = {
  [FRAME.DATA]: { min: 0, max: WIRE_LIMITS.FRAME_DATA_MAX_BYTES, of: 'stream' },
  [FRAME.OPEN]: { min: 1, max: WIRE_LIMITS.FRAME_CONTROL_MAX_BYTES, of: 'stream' },
  [FRAME.OPENED]: { ...CREDIT, of: 'stream' },
  [FRAME.REFUSED]: { ...REASON, of: 'stream' },
  [FRAME.FIN]: { min: 0, max: 0, of: 'stream' },
  [FRAME.RESET]: { ...REASON, of: 'stream' },
  [FRAME.WINDOW]: { ...CREDIT, of: 'stream' },
  [FRAME.PING]: { ...PING, of: 'carrier' },
  [FRAME.PONG]: { ...PING, of: 'carrier' },
  [FRAME.GO_AWAY]: { ...REASON, of: 'carrier' },
};

/** By the first byte of a header: what it must look like, or undefined for a type that this session does not have. */
export type FrameTable = readonly (FrameKind | undefined)[];

/** The frames of a session that agreed on these capabilities. */
export const frameTable = (
  capabilities: readonly string[],
  kinds: Readonly<Record<number, FrameKind>> = FRAME_KINDS,
): FrameTable =>
  Array.from({ length: 256 }, (_, type) => {
    const kind = kinds[type];
    return kind?.capability === undefined || capabilities.includes(kind.capability) ? kind : undefined;
  });
