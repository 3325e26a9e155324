// The first message of a visitor to the origin: 16 bytes that name the wanted service and the amount of data.

export const SERVICE = { echo: 1, source: 2, sink: 3, answer: 4 };

export const REQUEST_BYTES = 16;
/** Size of the sink's verdict: 1 or 0 for correct or wrong bytes, then the number of bytes received. */
export const VERDICT_BYTES = 16;
/** Size of the message after the head of an `answer` request, and of its response. */
export const SMALL_BYTES = 128;

/** Encodes a request. `offset` is the position in the pattern, different per stream so that mixed-up streams are detected. */
export function encodeRequest(service, { offset = 0, bytes = 0 } = {}) {
  const request = Buffer.alloc(REQUEST_BYTES);
  request.writeUInt8(0xbe, 0);
  request.writeUInt8(service, 1);
  request.writeUInt32BE(offset, 4);
  request.writeDoubleBE(bytes, 8);
  return request;
}

/** Decodes a request. Returns null if the bytes are not a request. */
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
