// Every bound of the rules, by name. docs/limits.md is written from these lines; a test compares the two.

const KiB = 1024;

export const CORE_LIMITS = {
  // --- messages of HTTP/1.1 ---
  /** from the request or status line to the empty line, both included; above: 431 */
  HTTP_HEAD_MAX_BYTES: 32 * KiB,
  /** field lines of a head; above: 431 */
  HTTP_FIELDS_MAX: 128,
  /** empty lines that are forgiven before a request line (RFC 9112, 2.2) */
  HTTP_EMPTY_LINES_MAX: 2,
  /** all extensions of one chunk line together */
  HTTP_CHUNK_EXTENSION_MAX_BYTES: 4 * KiB,
  /** field lines after the last chunk, together */
  HTTP_TRAILERS_MAX_BYTES: 8 * KiB,
  /** sixteen digits hold every safe integer, and leave room for a writer that pads with zeros */
  HTTP_LENGTH_MAX_DIGITS: 16,
  /** names in `Connection`: each is compared with each field, so a long list would be work for nothing */
  HTTP_CONNECTION_OPTIONS_MAX: 32,
  /** a DNS name has at most 253 characters; the longest port adds six */
  HTTP_AUTHORITY_MAX_CHARS: 260,

  // --- names ---
  /** a label of DNS has no more */
  SUBDOMAIN_MAX_CHARS: 63,
  /** enough to tell tunnels apart, and fits a line */
  TUNNEL_NAME_MAX_CHARS: 100,
  /** as of a tunnel */
  GROUP_NAME_MAX_CHARS: 100,
  /** of a refused name in the text that says why */
  REFUSED_NAME_SHOWN_CHARS: 40,

  // --- accounts ---
  /** a whole address (RFC 5321) */
  EMAIL_MAX_CHARS: 254,
  /** the part of an address before the @ (RFC 5321) */
  EMAIL_LOCAL_PART_MAX_CHARS: 64,
  /** one label of an address’s domain (RFC 1035) */
  EMAIL_LABEL_MAX_CHARS: 63,
  /** length is what makes a password hard to guess, and the only thing that is asked for */
  PASSWORD_MIN_CHARS: 8,
  /** of UTF-8: bounds the work of a hash */
  PASSWORD_MAX_BYTES: 1024,

  // --- connections of a process ---
  /** control connections of one network that have not authenticated: an office whose 50 clients all come back brings 250 */
  UNAUTHENTICATED_PER_NETWORK: 256,
  /** the same of all networks together; above it the oldest of the network that holds most gives way */
  UNAUTHENTICATED_MAX: 4096,
  /** control connections and carriers that one account may hold however few descriptors there are; else a quarter of those for control */
  ACCOUNT_CONNECTIONS_MIN: 64,
  /** ports of tunnels that one account may have open however few descriptors there are; else a quarter of those for ports */
  ACCOUNT_PORTS_MIN: 128,
  /** carriers that a session will want: without room for them it is not let in */
  CARRIERS_OF_A_SESSION: 4,
  /** connections that a network may hold before it is one that holds more than others: a client that comes back dials five at once */
  NETWORK_ALLOWANCE: 8,
  /** connections of the network that holds most that are looked at for the longest idle one: it happens at each accept of a flood */
  SHED_LOOKS_MAX: 256,
  /** refused connections that are told why at a time; further ones are reset. Their descriptors are of those kept back */
  REFUSALS_BEING_TOLD: 64,

  // --- peers ---
  /** of UTF-8: the edge holds the SHA-256 of a secret, and must not find it by trying */
  P2P_SECRET_MIN_BYTES: 16,
  /** of UTF-8: more is a file that was not meant */
  P2P_SECRET_MAX_BYTES: 1024,

  // --- health ---
  /** transitions of one tunnel’s health that are kept, the oldest go first */
  HEALTH_HISTORY_MAX: 50,
} as const;

/** Those that a reader of messages may want otherwise, as an argument. */
export interface Http1Bounds {
  readonly headMaxBytes: number;
  readonly fieldsMax: number;
  readonly emptyLinesMax: number;
  readonly chunkExtensionMaxBytes: number;
  readonly trailersMaxBytes: number;
}

export const HTTP1_BOUNDS: Http1Bounds = {
  headMaxBytes: CORE_LIMITS.HTTP_HEAD_MAX_BYTES,
  fieldsMax: CORE_LIMITS.HTTP_FIELDS_MAX,
  emptyLinesMax: CORE_LIMITS.HTTP_EMPTY_LINES_MAX,
  chunkExtensionMaxBytes: CORE_LIMITS.HTTP_CHUNK_EXTENSION_MAX_BYTES,
  trailersMaxBytes: CORE_LIMITS.HTTP_TRAILERS_MAX_BYTES,
};
