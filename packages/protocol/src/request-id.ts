// Request ids of http tunnels, identical at edge and client. The id is never sent: both sides derive it from the carrier's token, the
// stream id, and the position of the request in the stream.

/** 48 bits are enough to distinguish the carriers of an edge, and fit into a number. */
const TAG_HEX_DIGITS = 12;
const TAG_CHARACTERS = 10;

/**
 * Returns the tag of a carrier. `tokenHash` is the SHA-256 of the carrier's token in hex. The token is valid only once, so a part of its
 * hash reveals nothing useful.
 */
export const carrierTagOf = (tokenHash: string): string =>
  Number.parseInt(tokenHash.slice(0, TAG_HEX_DIGITS), 16).toString(36).padStart(TAG_CHARACTERS, '0');

/** Stream that transports a request. */
export interface RequestStream {
  /** Tag of the stream's carrier. Empty if both ends have no common tag. */
  readonly carrierTag: string;
  /** Stream id, unique on its carrier. */
  readonly id: number;
}

/** Returns the request id. `ordinal` is 1 for the first request of the stream. */
export const requestIdOf = ({ carrierTag, id }: RequestStream, ordinal: number): string => {
  const first = `req_${carrierTag}${id.toString(36)}`;
  return ordinal === 1 ? first : `${first}_${ordinal.toString(36)}`;
};
