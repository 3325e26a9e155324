// What a visitor says first to the origin: 16 bytes that name the service it wants and how much of it.

export const SERVICE = { echo: 1, source: 2, sink: 3, answer: 4 };

export const REQUEST_BYTES = 16;
/** The sink's answer: 1 or 0 for right or wrong, then how many bytes it saw. */
export const VERDICT_BYTES = 16;
/** What an `answer` request carries behind its head and gets back. */
export const SMALL_BYTES = 128;

/** `offset` is where in the pattern the bytes begin, so that streams cannot be mixed up unseen. */
export function encodeRequest(service, { offset = 0, bytes = 0 } = {}) {
  const request = Buffer.alloc(REQUEST_BYTES);
  request.writeUInt8(0xbe, 0);
  request.writeUInt8(service, 1);
  request.writeUInt32BE(offset, 4);
  request.writeDoubleBE(bytes, 8);
  return request;
}

/** null for bytes that are no request. */
export function decodeRequest(request) {
  if (request[0] !== 0xbe) return null;
  return { service: request[1], offset: request.readUInt32BE(4), bytes: request.readDoubleBE(8) };
}

export function encodeVerdict(right, bytes) {
  const verdict = Buffer.alloc(VERDICT_BYTES);
  verdict.writeUInt8(right ? 1 : 0, 0);
  verdict.writeDoubleBE(bytes, 8);
  return verdict;
}

export const decodeVerdict = (verdict) => ({ right: verdict[0] === 1, bytes: verdict.readDoubleBE(8) });
