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

interface PayloadBounds {
  readonly min: number;
  readonly max: number;
}

const CREDIT: PayloadBounds = { min: 4, max: 4 };
const REASON: PayloadBounds = { min: 4, max: 4 + WIRE_LIMITS.RESET_REASON_MAX_BYTES };
const PING: PayloadBounds = { min: PING_PAYLOAD_BYTES, max: PING_PAYLOAD_BYTES };

const PAYLOAD_BOUNDS: Readonly<Record<FrameType, PayloadBounds>> = {
  [FRAME.DATA]: { min: 0, max: WIRE_LIMITS.FRAME_DATA_MAX_BYTES },
  [FRAME.OPEN]: { min: 1, max: WIRE_LIMITS.FRAME_CONTROL_MAX_BYTES },
  [FRAME.OPENED]: CREDIT,
  [FRAME.REFUSED]: REASON,
  [FRAME.FIN]: { min: 0, max: 0 },
  [FRAME.RESET]: REASON,
  [FRAME.WINDOW]: CREDIT,
  [FRAME.PING]: PING,
  [FRAME.PONG]: PING,
  [FRAME.GO_AWAY]: REASON,
};

/** The longest payload a frame of this type may carry. */
export const maxPayloadOf = (type: FrameType): number => PAYLOAD_BOUNDS[type].max;

/** The shortest payload a frame of this type may carry. */
export const minPayloadOf = (type: FrameType): number => PAYLOAD_BOUNDS[type].min;
