// Every bound of the shared rules, by name. docs/limits.md is written from these lines; a test compares the two.

export const RULE_LIMITS = {
  // --- names ---
  /**
   * a label of DNS has no more
   * @limit tunnels: Subdomain, length of one label | `TUNNEL_SUBDOMAIN_INVALID`
   */
  SUBDOMAIN_MAX_CHARS: 63,
  /**
   * as of a tunnel
   * @limit tunnels: Group name, length | `GROUP_NAME_INVALID`
   */
  GROUP_NAME_MAX_CHARS: 100,
  /** of a refused name in the text that says why */
  REFUSED_NAME_SHOWN_CHARS: 40,
  /**
   * names that an account has by use alone; the one unused for longest is released then
   * @limit tunnels: Names that one account holds by having used them | the name that was unused for longest is released
   */
  HELD_NAMES_PER_ACCOUNT_MAX: 100,

  // --- accounts ---
  /** a whole address (RFC 5321) */
  EMAIL_MAX_CHARS: 254,
  /** the part of an address before the @ (RFC 5321) */
  EMAIL_LOCAL_PART_MAX_CHARS: 64,
  /**
   * length is what makes a password hard to guess, and the only thing that is asked for
   * @limit accounts: Password, shortest | 400 `API_BAD_REQUEST`
   */
  PASSWORD_MIN_CHARS: 8,
  /**
   * of UTF-8: bounds the work of a hash
   * @limit accounts: Password, longest | 400 `API_BAD_REQUEST`
   */
  PASSWORD_MAX_BYTES: 1024,

  // --- clients that ask to be connected (OAuth) ---
  /** of a client id and of a redirect URI: what browsers and servers carry without trouble */
  OAUTH_URI_MAX_CHARS: 2000,

  // --- connections of a process ---
  /**
   * control connections of one network that have not authenticated: an office whose 50 clients all come back brings 250
   * @limit tunnels: Client connections from one network that have not authenticated | `CONTROL_WAITING_LIMIT`
   */
  UNAUTHENTICATED_PER_NETWORK: 256,
  /** the same of all networks together; above it the oldest of the network that holds most gives way */
  UNAUTHENTICATED_MAX: 4096,
  /** ports of tunnels that one account may have open however few descriptors there are; else a quarter of those for ports */
  ACCOUNT_PORTS_MIN: 128,
  /** connections that a network may hold before it is one that holds more than others: a client that comes back dials five at once */
  NETWORK_ALLOWANCE: 8,
  /** connections of the network that holds most that are looked at for the longest idle one: it happens at each accept of a flood */
  SHED_LOOKS_MAX: 256,
  /** refused connections that are told why at a time; further ones are reset. Their descriptors are of those kept back */
  REFUSALS_BEING_TOLD: 64,

  // --- flows of udp tunnels ---
  /** how long a flow that a policy refused is not asked for again */
  FLOW_DENIED_MS: 10_000,
  /** seconds in the wheel of expiry; one that is over later is looked at once more */
  FLOW_WHEEL_SLOTS: 64,

  // --- peers ---
  /**
   * of UTF-8: the edge holds the SHA-256 of a secret, and must not find it by trying
   * @limit tunnels: p2p secret, shortest | `CLIENT_P2P_SECRET_SHORT`
   */
  P2P_SECRET_MIN_BYTES: 16,
  /**
   * of UTF-8: more is a file that was not meant
   * @limit tunnels: p2p secret, longest | `CLIENT_P2P_SECRET_LONG`
   */
  P2P_SECRET_MAX_BYTES: 1024,

  // --- policies ---
  /** services that one tunnel may send requests to beside its own */
  POLICY_SERVICES_MAX: 16,

  // --- health ---
  /** transitions of one tunnel’s health that are kept, the oldest go first */
  HEALTH_HISTORY_MAX: 50,

  // --- the first message of TLS ---
  /** of a visitor (ClientHello); a longer one is closed. Those with keys that are safe from quantum computers have 1.5 KB */
  TLS_HELLO_MAX_BYTES: 16_384,

  // --- certificates that are ordered by themselves ---
  /**
   * certificates of single names below the domain within the window below; the best known authority gives 50 a registered domain
   * @limit operator: Certificates for single names within 7 days | further orders wait
   */
  CERTIFICATE_NAMES_MAX: 40,
  /** the window in which those are counted */
  CERTIFICATE_NAMES_WINDOW_MS: 7 * 24 * 3_600_000,
} as const;
