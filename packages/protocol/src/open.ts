// Encodes and decodes OPEN, which starts a stream: as JSON (version 1), and in compact form (OPEN_COMPACT), which costs a tenth of the CPU
// time and leaves room for new fields.
import { encodeFrame, FRAME, readUint32, writeFrameHeader, writeUint32 } from './frames.ts';
import { WIRE_LIMITS } from './limits.ts';
import { cutText, decodeText, encodeText, parseJson } from './text-codec.ts';

/** Maximum length of a tunnel id in OPEN, as on the control connection. Small enough for OPEN to fit its frame with any escaping. */
export const OPEN_TUNNEL_ID_MAX_CHARS = 100;
/** Maximum length of the visitor's address and port in OPEN. Small enough for OPEN to fit its frame with any escaping. */
export const OPEN_VISITOR_MAX_CHARS = 300;
/** Maximum length of a peer id in OPEN, as on the control connection. Small enough for OPEN to fit its frame with any escaping. */
export const OPEN_PEER_ID_MAX_CHARS = 100;
/** Maximum length of the public address in OPEN: room for an address and a port, in visible ASCII. */
export const OPEN_PUBLIC_ADDRESS_MAX_CHARS = 100;

/** Metadata of a new stream, sent by the opener. */
export interface StreamHead {
  readonly tunnelId: string;
  /** Address of the visitor as host:port. */
  readonly visitor: string;
  /** Flow number, only for datagram streams. Identifies the flow for datagrams outside its carrier. */
  readonly flow?: number;
  /** Peer that the relay stream belongs to. Only sent to the publisher of a p2p tunnel. */
  readonly peerId?: string;
  /** Name of the client's service chosen by a policy. Undefined for the tunnel's default service. */
  readonly service?: string;
  /** Public address that the visitor reached, as host:port, for clients that write PROXY headers. */
  readonly publicAddress?: string;
}

export interface OpenPayload {
  readonly head: StreamHead;
  readonly windowBytes: number;
}

const HEADER = WIRE_LIMITS.FRAME_HEADER_BYTES;

// ---- as JSON ----

const DATAGRAM_MODE = 'datagram';

/** Encodes OPEN as JSON. Datagram streams have no credit, so their window is 0. */
export const encodeOpen = (streamId: number, head: StreamHead, windowBytes: number): Uint8Array => {
  const { tunnelId, flow, peerId, service, publicAddress } = head;
  const visitor = cutText(head.visitor, OPEN_VISITOR_MAX_CHARS);
  const mode = flow === undefined ? undefined : DATAGRAM_MODE;
  const later = { peer_id: peerId, service, public_address: publicAddress };
  const fields = { tunnel_id: tunnelId, visitor, window: windowBytes, mode, flow, ...later };
  return encodeFrame(FRAME.OPEN, streamId, encodeText(JSON.stringify(fields)));
};

export const decodeOpen = (payload: Uint8Array): OpenPayload | null => {
  const text = decodeText(payload);
  if (text === null) return null;
  const value = parseJson(text);
  if (typeof value !== 'object' || value === null) return null;
  const { tunnel_id, visitor, window, mode, flow, peer_id, service, public_address } = value as Record<string, unknown>;
  if (!isTunnelId(tunnel_id) || !isVisitor(visitor) || !isWindow(window)) return null;
  if (peer_id !== undefined && !isPeerId(peer_id)) return null;
  if (service !== undefined && !isService(service)) return null;
  if (public_address !== undefined && !isPublicAddress(public_address)) return null;
  const head = {
    tunnelId: tunnel_id,
    visitor,
    ...(peer_id !== undefined && { peerId: peer_id }),
    ...(service !== undefined && { service }),
    ...(public_address !== undefined && { publicAddress: public_address }),
  };
  if (mode === undefined) return { head, windowBytes: window };
  if (mode !== DATAGRAM_MODE || !isFlow(flow) || window !== 0) return null;
  return { head: { ...head, flow }, windowBytes: 0 };
};

const isTunnelId = (value: unknown): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= OPEN_TUNNEL_ID_MAX_CHARS;

const isPeerId = (value: unknown): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= OPEN_PEER_ID_MAX_CHARS;

/** Service and public address are visible ASCII, so that OPEN fits its frame with any escaping of the other fields. */
const VISIBLE = /^[!-~]+$/;

const isService = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= WIRE_LIMITS.OPEN_SERVICE_MAX_CHARS && VISIBLE.test(value);

const isPublicAddress = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= OPEN_PUBLIC_ADDRESS_MAX_CHARS && VISIBLE.test(value);

const isVisitor = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= OPEN_VISITOR_MAX_CHARS;

const isWindow = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= WIRE_LIMITS.STREAM_WINDOW_MAX_BYTES;

const isFlow = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff;

// ---- compact ----
// Window as u32, then fields: type u8, length u16, value. Texts are UTF-8. Unknown types are ignored; known types must not repeat.

const FIELD = { TUNNEL_ID: 1, VISITOR: 2, FLOW: 3, PEER_ID: 4, SERVICE: 5, PUBLIC_ADDRESS: 6 } as const;
const FIELD_HEADER = 3;
const WINDOW_BYTES = 4;

/**
 * Writes OPEN_COMPACT with its header at the start of `target`, which must have room for the largest control frame. Returns the end
 * position.
 */
export const writeCompactOpen = (
  target: Uint8Array,
  streamId: number,
  { tunnelId, visitor, flow, peerId, service, publicAddress }: StreamHead,
  windowBytes: number,
): number => {
  let at: number = HEADER;
  writeUint32(target, at, windowBytes);
  at = writeTextField(target, at + WINDOW_BYTES, FIELD.TUNNEL_ID, tunnelId);
  if (visitor !== '') {
    at = writeTextField(target, at, FIELD.VISITOR, cutText(visitor, OPEN_VISITOR_MAX_CHARS));
  }
  if (flow !== undefined) {
    writeFieldHeader(target, at, FIELD.FLOW, 4);
    writeUint32(target, at + FIELD_HEADER, flow);
    at += FIELD_HEADER + 4;
  }
  if (peerId !== undefined) at = writeTextField(target, at, FIELD.PEER_ID, peerId);
  if (service !== undefined) at = writeTextField(target, at, FIELD.SERVICE, service);
  if (publicAddress !== undefined) at = writeTextField(target, at, FIELD.PUBLIC_ADDRESS, publicAddress);
  writeFrameHeader(target, 0, FRAME.OPEN_COMPACT, at - HEADER, streamId);
  return at;
};

const writeFieldHeader = (target: Uint8Array, at: number, type: number, length: number): void => {
  target[at] = type;
  target[at + 1] = length >>> 8;
  target[at + 2] = length;
};

const writeTextField = (target: Uint8Array, at: number, type: number, text: string): number => {
  const from = at + FIELD_HEADER;
  let end = from + text.length;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit >= 0x80) {
      const bytes = encodeText(text);
      target.set(bytes, from);
      end = from + bytes.length;
      break;
    }
    target[from + i] = unit;
  }
  writeFieldHeader(target, at, type, end - from);
  return end;
};

export const decodeCompactOpen = (payload: Uint8Array): OpenPayload | null => {
  let tunnelId: string | null = null;
  let visitor: string | null = null;
  let flow: number | undefined;
  let peerId: string | null = null;
  let service: string | null = null;
  let publicAddress: string | null = null;
  let at: number = WINDOW_BYTES;
  while (at < payload.length) {
    const from = at + FIELD_HEADER;
    if (from > payload.length) return null;
    const type = payload[at];
    const end = from + (((payload[at + 1] ?? 0) << 8) | (payload[at + 2] ?? 0));
    if (end > payload.length) return null;
    if (type === FIELD.TUNNEL_ID) {
      if (tunnelId !== null) return null;
      tunnelId = readText(payload, from, end);
      if (!isTunnelId(tunnelId)) return null;
    } else if (type === FIELD.VISITOR) {
      if (visitor !== null) return null;
      visitor = readText(payload, from, end);
      if (!isVisitor(visitor)) return null;
    } else if (type === FIELD.FLOW) {
      if (flow !== undefined || end - from !== 4) return null;
      flow = readUint32(payload, from);
    } else if (type === FIELD.PEER_ID) {
      if (peerId !== null) return null;
      peerId = readText(payload, from, end);
      if (!isPeerId(peerId)) return null;
    } else if (type === FIELD.SERVICE) {
      if (service !== null) return null;
      service = readText(payload, from, end);
      if (!isService(service)) return null;
    } else if (type === FIELD.PUBLIC_ADDRESS) {
      if (publicAddress !== null) return null;
      publicAddress = readText(payload, from, end);
      if (!isPublicAddress(publicAddress)) return null;
    }
    at = end;
  }
  const windowBytes = readUint32(payload, 0);
  if (tunnelId === null || payload.length < WINDOW_BYTES || !isWindow(windowBytes)) return null;
  if (flow !== undefined && windowBytes !== 0) return null;
  return { head: headOf(tunnelId, visitor ?? '', flow, peerId, service, publicAddress), windowBytes };
};

const headOf = (
  tunnelId: string,
  visitor: string,
  flow: number | undefined,
  peerId: string | null,
  service: string | null,
  publicAddress: string | null,
): StreamHead => {
  if (flow === undefined && peerId === null && service === null && publicAddress === null) return { tunnelId, visitor };
  return {
    tunnelId,
    visitor,
    ...(flow !== undefined && { flow }),
    ...(peerId !== null && { peerId }),
    ...(service !== null && { service }),
    ...(publicAddress !== null && { publicAddress }),
  };
};

/** Returns null for invalid UTF-8. Short ASCII texts are read in a loop, which is faster than a TextDecoder call. */
const readText = (bytes: Uint8Array, start: number, end: number): string | null => {
  let text = '';
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte >= 0x80) return decodeText(bytes.subarray(start, end));
    text += String.fromCharCode(byte);
  }
  return text;
};
