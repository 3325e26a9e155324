// What a request of an http tunnel is called, at the edge and at the client alike. It is never sent: both derive it from what they share,
// which is the token of the carrier, the number of the stream, and which request of that stream it is.

/** 48 bits tell the carriers of an edge apart, and fit a number. */
const TAG_HEX_DIGITS = 12;
const TAG_CHARACTERS = 10;

/** `tokenHash`: SHA-256 of the token that the carrier came with, in hex. The token was good for that once: a part of its hash tells nothing. */
export const carrierTagOf = (tokenHash: string): string =>
  Number.parseInt(tokenHash.slice(0, TAG_HEX_DIGITS), 16).toString(36).padStart(TAG_CHARACTERS, '0');

/** Where a request passes. */
export interface RequestStream {
  /** Empty: both ends did not agree on one. */
  readonly carrierTag: string;
  /** Never used again on its carrier. */
  readonly id: number;
}

/** `ordinal`: 1 for the first request of the stream. */
export const requestIdOf = ({ carrierTag, id }: RequestStream, ordinal: number): string => {
  const first = `req_${carrierTag}${id.toString(36)}`;
  return ordinal === 1 ? first : `${first}_${ordinal.toString(36)}`;
};
