// Admission of API calls: finds the caller that a call counts for, lets some calls pass without a turn, and answers calls not started in
// time. Nothing here queries the database, except for new signing keys, at most once a second. A call waits for its body and for such a
// key before its turn, because waiting there takes nothing from other callers.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ServerConfig } from '@tunnel/config/server';
import {
  apiErrorHeaders,
  apiErrorOf,
  BILLING_WEBHOOK_PATH,
  EDGE_LINK_PATH,
  REQUEST_ID_PATTERN,
} from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { networkOf, TrustedProxies } from '@tunnel/rules/net';
import { type Clock, equalInConstantTime, type Logger, LogLimiter, type Secret } from '@tunnel/runtime';
import { LIMITS } from '../../limits.ts';
import { FORGOT_ANSWER, RESEND_ANSWER } from '../../services/accounts/accounts.ts';
import { looksLikeApiKey } from '../../services/keys/api-key.rules.ts';
import { type HeaderPairs, headersOfEveryAnswer, newRequestId } from '../shared/every-answer.ts';
import { CHALLENGE_PATH, MCP_PATH } from '../shared/paths.ts';
import { createRequestSource, type RequestSourceOptions } from '../shared/trusted-edge-header.ts';
import { type ApiCaller, CallQueue, type Outgoing } from './call-queue.ts';
import { Pipelines } from './pipelines.ts';

export interface ApiAdmissionOptions extends Pick<RequestSourceOptions, 'edgeSecret'> {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: Pick<ServerConfig['platform'], 'limits' | 'trusted_proxies' | 'public_url'>;
  readonly adminToken: Secret;
  readonly accounts: TokenAccounts;
}

/** Finds the account of an access token without querying the database. The methods return null if the account cannot be found. */
export interface TokenAccounts {
  /** Returns the account of a token that was checked before. */
  known(token: string): string | null;
  /** Waits for the signing key of a token, if the key is unknown. Returns null if there is nothing to wait for. Never rejects. */
  lookForKey(token: string): Promise<void> | null;
  /** Verifies the signature of a token and returns its account. */
  check(token: string): Promise<string | null>;
}

/** The limit by which a call was refused. */
type ApiRefusal = 'account' | 'network' | 'writes' | 'pipelined';

const BEARER = /^bearer +(\S+) *$/i;

/** Paths that need no turn: served from memory, subject to separate limits, or needed by callers over every limit. */
const OUTSIDE = new RegExp(
  `^(/health(/db)?$|/app(/|$)|/docs|/install|/downloads/|${EDGE_LINK_PATH}/|${CHALLENGE_PATH})`,
);
const OUTSIDE_PATHS: ReadonlySet<string> = new Set([MCP_PATH, BILLING_WEBHOOK_PATH, '/auth/logout']);

const isOutsidePath = (path: string): boolean => OUTSIDE_PATHS.has(path) || OUTSIDE.test(path);

/** Returns true if a request needs no turn. Checks the raw target and the normalized path, because `/app/../usage` is an API call. */
const isOutside = (target: string): boolean => {
  const path = pathIn(target);
  if (!isOutsidePath(path)) return false;
  if (!ODD.test(path)) return true;
  const url = `http://host${target}`;
  return URL.canParse(url) && isOutsidePath(new URL(url).pathname);
};

const ODD = /[^\w/-]/;

const pathIn = (target: string): string => {
  const end = target.indexOf('?');
  return end === -1 ? target : target.slice(0, end);
};

/**
 * Responses that never reveal whether an account exists. Refused requests get the same response, so that a refusal is not visible either.
 */
const SAME_ANSWER: ReadonlyMap<string, { message: string }> = new Map([
  ['/auth/forgot-password', FORGOT_ANSWER],
  ['/auth/resend-verification', RESEND_ANSWER],
]);

/**
 * Places for API calls. Few calls run at once, so that none waits long for a database connection or for the responses of other calls. A
 * single caller gets fewer places than there are database connections, so that the next caller finds a free connection.
 */
export const CALLS = { atOnce: 24, aloneAtOnce: 16, waitingMax: 4096, callersMax: 20_000 };

/** Maximum number of access token signatures verified at once for calls without a turn. Calls beyond the limit count for their network. */
const TOKENS_CHECKED_AT_ONCE = 16;

export class ApiAdmission {
  readonly refusals: Record<ApiRefusal, number> = { account: 0, network: 0, writes: 0, pipelined: 0 };
  readonly #options: ApiAdmissionOptions;
  readonly #queue: CallQueue;
  readonly #pipelines = new Pipelines();
  readonly #sourceOf: ReturnType<typeof createRequestSource>;
  readonly #headersOf: ReturnType<typeof headersOfEveryAnswer>;
  readonly #proxies: TrustedProxies;
  readonly #log: LogLimiter;
  /** Number of signatures being verified for calls without a turn. */
  #checking = 0;
  /** Number of calls waiting for the signing key of their token. */
  #looking = 0;

  constructor(options: ApiAdmissionOptions) {
    const { clock, logger } = options;
    const { limits, trusted_proxies, public_url: publicUrl } = options.settings;
    this.#options = options;
    this.#queue = new CallQueue(
      { clock, refusal: (caller, seconds) => this.#refusal(caller, seconds) },
      {
        ...CALLS,
        account: { atOnce: limits.account_calls_at_once, perSecond: limits.account_calls_per_second },
        network: { atOnce: limits.network_calls_at_once, perSecond: limits.network_calls_per_second },
      },
    );
    this.#sourceOf = createRequestSource(options);
    this.#headersOf = headersOfEveryAnswer({ publicUrl, edgeSecret: options.edgeSecret });
    this.#proxies = new TrustedProxies(trusted_proxies);
    this.#log = new LogLimiter(logger, () => clock.monotonic());
  }

  get running(): number {
    return this.#queue.running;
  }

  get waiting(): number {
    return this.#queue.waiting;
  }

  /**
   * Admits a request before any work is done for it. An API call is served when its turn comes, and other requests at once; both wait
   * until earlier requests of the connection have been answered. So a waiting or refused call costs a fraction of a served call.
   */
  pass(request: IncomingMessage, response: ServerResponse, serve: () => Promise<void>): void {
    const begin = (): void => {
      if (isOutside(request.url ?? '')) void serve();
      else void this.#pass(request, response, serve);
    };
    if (!this.#pipelines.enter(request.socket, response, begin)) this.#count('pipelined', this.#strangerOf(request));
  }

  /**
   * Runs work in a separate turn, for a request admitted without a turn. Throws API_ACCOUNT_LIMIT or API_NETWORK_LIMIT if the turn does
   * not come in time.
   */
  inTurn<T>(outgoing: Outgoing | undefined, caller: ApiCaller, work: () => Promise<T>): Promise<T> {
    return this.#queue.inTurn(outgoing, caller, work);
  }

  /** Returns the caller for calls without an account: the network of the address. */
  networkOf(address: string): ApiCaller {
    // A trusted proxy without a client address stands for many networks, so no network's limits apply.
    if (this.#proxies.trusts(address)) return { kind: 'unbounded', id: address };
    return { kind: 'network', id: networkOf(address) };
  }

  /** Counts and logs a write refused because the account has reached its daily limit. */
  noteWritesRefused(userId: string): void {
    this.#count('writes', { kind: 'account', id: userId });
  }

  async #pass(request: IncomingMessage, response: ServerResponse, serve: () => Promise<void>): Promise<void> {
    try {
      const found = this.#callerOf(request);
      const caller = found instanceof Promise ? await found : found;
      if (caller === null) await serve();
      // Without a complete body, the caller has disconnected.
      else if (await wholeBody(request)) await this.#queue.inTurn(response, caller, serve);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      // On other faults, the caller has disconnected and gets no response.
      if (isApiLimit(error))
        answerRefused(request, response, { fault: error, headers: this.#headersOf(this.#sourceOf(request)) });
    }
  }

  /** Finds the caller of a request. Null means the operator, who has no limit. */
  #callerOf(request: IncomingMessage): ApiCaller | null | Promise<ApiCaller> {
    const token = BEARER.exec(request.headers.authorization ?? '')?.[1];
    if (token === undefined || looksLikeApiKey(token)) return this.#strangerOf(request);
    // Nearly every call has a known token. Comparing with the operator's token costs two hashes, so the comparison comes after the
    // lookup.
    const known = this.#options.accounts.known(token);
    if (known !== null) return { kind: 'account', id: known };
    if (equalInConstantTime(token, this.#options.adminToken.reveal())) return null;
    return this.#checked(token, request);
  }

  async #checked(token: string, request: IncomingMessage): Promise<ApiCaller> {
    await this.#lookForKey(token);
    // Verifying a forged token costs as much as verifying a valid token. With too many at once, further calls count for their network.
    // The token is then verified within their turn.
    if (this.#checking >= TOKENS_CHECKED_AT_ONCE) return this.#strangerOf(request);
    this.#checking += 1;
    try {
      const account = await this.#options.accounts.check(token);
      return account === null ? this.#strangerOf(request) : { kind: 'account', id: account };
    } finally {
      this.#checking -= 1;
    }
  }

  /**
   * Waits for an unknown signing key before the turn. Forged tokens name keys that do not exist, and would hold places during the lookup.
   */
  async #lookForKey(token: string): Promise<void> {
    const look = this.#looking < CALLS.waitingMax ? this.#options.accounts.lookForKey(token) : null;
    if (look === null) return;
    this.#looking += 1;
    await look;
    this.#looking -= 1;
  }

  #strangerOf(request: IncomingMessage): ApiCaller {
    return this.networkOf(this.#sourceOf(request).address);
  }

  #refusal(caller: ApiCaller, seconds: number): Fault {
    const reason = caller.kind === 'account' ? 'account' : 'network';
    this.#count(reason, caller);
    return new Fault(reason === 'account' ? 'API_ACCOUNT_LIMIT' : 'API_NETWORK_LIMIT', { seconds });
  }

  #count(reason: ApiRefusal, { kind, id }: ApiCaller): void {
    this.refusals[reason] += 1;
    const who = kind === 'account' ? { account_id: id } : { network: id };
    this.#log.log('warn', reason, { reason, ...who }, 'API calls are being rejected');
  }
}

/** Returns true for the fault of a call not started in time. */
export const isApiLimit = (error: unknown): boolean =>
  error instanceof Fault && (error.code === 'API_ACCOUNT_LIMIT' || error.code === 'API_NETWORK_LIMIT');

/** Returns true if calls of the path can be rejected visibly by the limits of API calls. Used for the API documentation. */
export const mayBeRefused = (path: string): boolean => !isOutside(path) && !SAME_ANSWER.has(path);

const answerRefused = (
  request: IncomingMessage,
  response: ServerResponse,
  { fault, headers: headersOfAll }: { readonly fault: Fault; readonly headers: HeaderPairs },
): void => {
  const given = request.headers['x-request-id'];
  const requestId = typeof given === 'string' && REQUEST_ID_PATTERN.test(given) ? given : newRequestId();
  const same = request.method === 'POST' ? SAME_ANSWER.get(pathIn(request.url ?? '')) : undefined;
  const body = JSON.stringify(same ?? apiErrorOf(fault, requestId));
  const headers = same === undefined ? apiErrorHeaders(fault) : {};
  response
    .writeHead(same === undefined ? fault.status : 200, [
      ...headersOfAll.flat(),
      ...[
        'x-request-id',
        requestId,
        'content-type',
        'application/json',
        'content-length',
        `${Buffer.byteLength(body)}`,
      ],
      ...Object.entries(headers).flat(),
    ])
    .end(body);
  // Discards the unread rest of a body that was too long.
  request.resume();
};

/** A request with the property in which hono's listener looks for a body that has been read already. */
type Read = IncomingMessage & { rawBody?: Buffer };

/**
 * Reads the body of a call before the call's turn, so that a caller that sends the body slowly or never does not hold a place. Resolves
 * with false if the connection broke. A body over the limit is read only far enough to exceed the limit; the app rejects the request.
 */
const wholeBody = (request: Read): boolean | Promise<boolean> => {
  if (!isReadHere(request)) return true;
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const settle = (isThere: boolean): void => {
      request.off('data', onData).off('end', onEnd).off('close', onClose);
      if (isThere) request.rawBody = Buffer.concat(chunks);
      resolve(isThere);
    };
    const onData = (chunk: Buffer): void => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes <= LIMITS.BODY_MAX_BYTES) return;
      request.pause();
      settle(true);
    };
    const onEnd = (): void => settle(true);
    const onClose = (): void => settle(false);
    request.on('data', onData).on('end', onEnd).on('close', onClose);
    if (request.destroyed) settle(request.readableEnded);
  });
};

/**
 * Returns true if the body must be read before the turn. The app reads no body of GET and HEAD requests, and rejects a body with a too
 * large Content-Length unread.
 */
const isReadHere = ({ method, headers }: IncomingMessage): boolean => {
  if (method === 'GET' || method === 'HEAD') return false;
  if (headers['transfer-encoding'] !== undefined) return true;
  const length = Number(headers['content-length'] ?? 0);
  return length > 0 && length <= LIMITS.BODY_MAX_BYTES;
};
