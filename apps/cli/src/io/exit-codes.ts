// The exit codes of the contract, and which fault gives which.
import type { ErrorCode, Fault } from '@tunnel/errors';

export const EXIT = {
  endedAsAsked: 0,
  unexpected: 1,
  usage: 2,
  keyRefused: 3,
  tunnelsRefused: 4,
  notReached: 5,
  accountClosed: 6,
} as const;

export type ExitCode = number;

/** A key, a password or a session: whoever asks has to show another one. */
const KEY_REFUSED: readonly ErrorCode[] = [
  'AUTH_TOKEN_INVALID',
  'AUTH_TOKEN_REVOKED',
  'LOGIN_WRONG',
  'ACCOUNT_UNVERIFIED',
  'ACCOUNT_EXTERNAL',
  'CLIENT_LOGIN_NEEDED',
];

/** Said by a proxy: the server was not reached, and asking again at once would be answered the same. */
const PROXY_SAYS_NO: readonly ErrorCode[] = ['CLIENT_PROXY_AUTH', 'CLIENT_PROXY_REFUSED'];

/** Closed to traffic, with the reason in its own words; those that begin with ACCOUNT_ are too. */
const ACCOUNT_CLOSED: readonly ErrorCode[] = ['SPEND_CAP_REACHED'];

/** Wrong settings: the same command gives the same answer until someone changes it. */
const USAGE: readonly ErrorCode[] = [
  'AUTH_TOKEN_MISSING',
  'CLIENT_KEY_MISSING',
  'CLIENT_NAME_INVALID',
  'CLIENT_USAGE',
  'CLIENT_AMBIGUOUS',
  'CLIENT_TUNNEL_AMBIGUOUS',
  'CLIENT_TUNNEL_UNKNOWN',
  'CLIENT_REQUEST_UNKNOWN',
  'CLIENT_TOKEN_FILE',
  'CLIENT_TARGET_NOT_ALLOWED',
  'CLIENT_SERVER_SPEAKS_TLS',
  'CLIENT_SERVER_SPEAKS_PLAIN',
  'CLIENT_CERTIFICATE',
  'CLIENT_NOT_AN_EDGE',
  'CLIENT_NOT_AN_API',
  'CLIENT_NOT_A_PLATFORM',
  'CLIENT_FILE',
  'CLIENT_SERVICE',
  'CLIENT_MCP_SERVER',
  'CLIENT_P2P_SECRET_SHORT',
  'CLIENT_P2P_SECRET_LONG',
  'CLIENT_P2P_SECRET_MISSING',
  'CLIENT_P2P_SECRET_FILE',
  'KEY_UNKNOWN',
  'KEY_LIMIT',
  'RESERVATION_UNKNOWN',
  'RESERVATION_LIMIT',
  'API_BAD_REQUEST',
  'BILLING_CAP_NOT_PAYG',
];

/** Families of codes that say no to what was typed or written: a setting, an own domain. */
const REFUSES_TYPED: readonly string[] = ['CONFIG_', 'DOMAIN_'];

/** Families of codes that say no to a tunnel or to a peer. */
const REFUSES_TUNNELS: readonly string[] = ['TUNNEL_', 'GROUP_', 'P2P_', 'POLICY_', 'CLIENT_EDGE_TOO_OLD'];

/** A fault that retrying could have healed only ends a client when its first start was over time. */
export const exitCodeOf = (fault: Fault): ExitCode => {
  if (KEY_REFUSED.includes(fault.code)) return EXIT.keyRefused;
  if (ACCOUNT_CLOSED.includes(fault.code) || fault.code.startsWith('ACCOUNT_')) return EXIT.accountClosed;
  if (USAGE.includes(fault.code) || REFUSES_TYPED.some((family) => fault.code.startsWith(family))) return EXIT.usage;
  if (REFUSES_TUNNELS.some((family) => fault.code.startsWith(family))) return EXIT.tunnelsRefused;
  if (PROXY_SAYS_NO.includes(fault.code)) return EXIT.notReached;
  if (fault.retryable && fault.code !== 'INTERNAL') return EXIT.notReached;
  return EXIT.unexpected;
};

/** Ended at once by a second signal, in the shell's way of saying so. */
export const exitCodeOfSignal = (signal: NodeJS.Signals): ExitCode => (signal === 'SIGINT' ? 130 : 143);
