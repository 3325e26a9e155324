// The 8-byte frame header: type (u8), payload length (u24), stream id (u32), all big-endian.
import { LIMITS } from './limits.ts';

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

const FIRST_TYPE = FRAME.DATA;
const LAST_TYPE = FRAME.GO_AWAY;

export const isFrameType = (type: number): type is FrameType => type >= FIRST_TYPE && type <= LAST_TYPE;

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

/** The longest payload a frame of this type may carry. */
export const maxPayloadOf = (type: FrameType): number =>
  type === FRAME.DATA ? LIMITS.FRAME_DATA_MAX_BYTES : LIMITS.FRAME_CONTROL_MAX_BYTES;
