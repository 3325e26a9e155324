// Frames of HTTP/2 written by hand: for visitors and services that mind no rule.

/** Types of frames. */
export const [DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE] = [
  0, 1, 2, 3, 4, 6, 7, 8,
] as const;
/** Flags. */
export const [END_STREAM, END_HEADERS] = [1, 4] as const;

export const frame = (
  type: number,
  flags: number,
  id: number,
  payload: Uint8Array | readonly number[] = [],
): Buffer => {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(id, 5);
  return Buffer.concat([head, Buffer.from(payload)]);
};
