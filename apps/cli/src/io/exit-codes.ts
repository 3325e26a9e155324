// The exit codes of the CLI's contract, and the exit code for each fault.
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

/** Error codes of a rejected key, password or session. The user needs other credentials. */
const KEY_REFUSED: readonly ErrorCode[] = [
  'AUTH_TOKEN_INVALID',
  'AUTH_TOKEN_REVOKED',
  'LOGIN_WRONG',
  'ACCOUNT_UNVERIFIED',
  'ACCOUNT_EXTERNAL',
  'CLIENT_LOGIN_NEEDED',
];

/** Error codes of a proxy. The server was not reached, and an immediate retry would fail in the same way. */
const PROXY_SAYS_NO: readonly ErrorCode[] = ['CLIENT_PROXY_AUTH', 'CLIENT_PROXY_REFUSED'];

/** Error codes of an account closed to traffic, in addition to all codes that begin with ACCOUNT_. */
const ACCOUNT_CLOSED: readonly ErrorCode[] = ['SPEND_CAP_REACHED'];

/** Error codes of wrong settings. The same command fails in the same way until a setting is changed. */
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

/** Prefixes of error codes that reject user input: a setting, or a custom domain. */
const REFUSES_TYPED: readonly string[] = ['CONFIG_', 'DOMAIN_'];

/** Prefixes of error codes that reject a tunnel or a peer connection. */
const REFUSES_TUNNELS: readonly string[] = ['TUNNEL_', 'GROUP_', 'P2P_', 'POLICY_', 'CLIENT_EDGE_TOO_OLD'];

/** Returns the exit code for a fault. A retryable fault ends a client only if its first start has taken too long. */
export const exitCodeOf = (fault: Fault): ExitCode => {
  if (KEY_REFUSED.includes(fault.code)) return EXIT.keyRefused;
  if (ACCOUNT_CLOSED.includes(fault.code) || fault.code.startsWith('ACCOUNT_')) return EXIT.accountClosed;
  if (USAGE.includes(fault.code) || REFUSES_TYPED.some((family) => fault.code.startsWith(family))) return EXIT.usage;
  if (REFUSES_TUNNELS.some((family) => fault.code.startsWith(family))) return EXIT.tunnelsRefused;
  if (PROXY_SAYS_NO.includes(fault.code)) return EXIT.notReached;
  if (fault.retryable && fault.code !== 'INTERNAL') return EXIT.notReached;
  return EXIT.unexpected;
};

/** Returns the exit code of a program ended immediately by a second signal, in the convention of shells. */
export const exitCodeOfSignal = (signal: NodeJS.Signals): ExitCode => (signal === 'SIGINT' ? 130 : 143);
