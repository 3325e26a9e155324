// The turns of API calls: whose a call is, which calls need none, and what a call is told whose turn does not come. Nothing here asks the database, but for
// new signing keys, once a second at most. What a call waits for that takes nothing from others, its body and such a key, it waits for before its turn.
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

/** The account of an access token, as far as this process can tell without the database; null where it cannot. */
export interface TokenAccounts {
  /** Of a token that was checked before. */
  known(token: string): string | null;
  /** The wait for the signing key of a token, where it is not known; null: there is none. Never rejects. */
  lookForKey(token: string): Promise<void> | null;
  /** By its signature. */
  check(token: string): Promise<string | null>;
}

/** By which limit a call was refused. */
type ApiRefusal = 'account' | 'network' | 'writes' | 'pipelined';

const BEARER = /^bearer +(\S+) *$/i;

/** Everything of these is served from memory, has limits of its own, or must work for a caller who is over every limit. */
const OUTSIDE = new RegExp(
  `^(/health(/db)?$|/app(/|$)|/docs|/install|/downloads/|${EDGE_LINK_PATH}/|${CHALLENGE_PATH})`,
);
const OUTSIDE_PATHS: ReadonlySet<string> = new Set([MCP_PATH, BILLING_WEBHOOK_PATH, '/auth/logout']);

const isOutsidePath = (path: string): boolean => OUTSIDE_PATHS.has(path) || OUTSIDE.test(path);

/** By the target as it was sent, and as it is read: `/app/../usage` is a call of the API. */
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

/** These never tell whether there is such an account, and so not that they did nothing either. */
const SAME_ANSWER: ReadonlyMap<string, { message: string }> = new Map([
  ['/auth/forgot-password', FORGOT_ANSWER],
  ['/auth/resend-verification', RESEND_ANSWER],
]);

/**
 * Few calls at once, so that none waits long for a database connection, or for the answers of the others to be written. A single caller has fewer than
 * there are database connections, so that the next caller finds one.
 */
export const CALLS = { atOnce: 24, aloneAtOnce: 16, waitingMax: 4096, callersMax: 20_000 };

/** Signatures of access tokens checked at once for calls that have no turn yet. The calls of further ones count for their networks. */
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
  /** Signatures that are being checked for calls that have no turn yet. */
  #checking = 0;
  /** Calls that wait for the signing keys of their tokens. */
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
   * What every request passes, before anything is made of it: a call of the API is served when it is its turn, all else at once, and both when earlier
   * requests of the same connection have been answered. A call that waits, and one that is refused, so costs a fraction of one that is served.
   */
  pass(request: IncomingMessage, response: ServerResponse, serve: () => Promise<void>): void {
    const begin = (): void => {
      if (isOutside(request.url ?? '')) void serve();
      else void this.#pass(request, response, serve);
    };
    if (!this.#pipelines.enter(request.socket, response, begin)) this.#count('pipelined', this.#strangerOf(request));
  }

  /** For work of a request that has no turn of its own. Throws API_ACCOUNT_LIMIT or API_NETWORK_LIMIT when the turn does not come in time. */
  inTurn<T>(outgoing: Outgoing | undefined, caller: ApiCaller, work: () => Promise<T>): Promise<T> {
    return this.#queue.inTurn(outgoing, caller, work);
  }

  /** The caller that a call without an account counts for: its network. */
  networkOf(address: string): ApiCaller {
    // A trusted proxy that names no client stands for many networks, so no network's limits apply.
    if (this.#proxies.trusts(address)) return { kind: 'unbounded', id: address };
    return { kind: 'network', id: networkOf(address) };
  }

  /** An account may make no more on this day. */
  noteWritesRefused(userId: string): void {
    this.#count('writes', { kind: 'account', id: userId });
  }

  async #pass(request: IncomingMessage, response: ServerResponse, serve: () => Promise<void>): Promise<void> {
    try {
      const found = this.#callerOf(request);
      const caller = found instanceof Promise ? await found : found;
      if (caller === null) await serve();
      // Else the caller has hung up.
      else if (await wholeBody(request)) await this.#queue.inTurn(response, caller, serve);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      // Else the caller has hung up.
      if (isApiLimit(error))
        answerRefused(request, response, { fault: error, headers: this.#headersOf(this.#sourceOf(request)) });
    }
  }

  /** null: the operator, who has no bound. */
  #callerOf(request: IncomingMessage): ApiCaller | null | Promise<ApiCaller> {
    const token = BEARER.exec(request.headers.authorization ?? '')?.[1];
    if (token === undefined || looksLikeApiKey(token)) return this.#strangerOf(request);
    // Nearly every call has a known token. The comparison with the operator's token costs two hashes, so it comes after that look-up.
    const known = this.#options.accounts.known(token);
    if (known !== null) return { kind: 'account', id: known };
    if (equalInConstantTime(token, this.#options.adminToken.reveal())) return null;
    return this.#checked(token, request);
  }

  async #checked(token: string, request: IncomingMessage): Promise<ApiCaller> {
    await this.#lookForKey(token);
    // Forged tokens cost a check each. Of many at once, the rest counts for its network until its own turn, which checks the token.
    if (this.#checking >= TOKENS_CHECKED_AT_ONCE) return this.#strangerOf(request);
    this.#checking += 1;
    try {
      const account = await this.#options.accounts.check(token);
      return account === null ? this.#strangerOf(request) : { kind: 'account', id: account };
    } finally {
      this.#checking -= 1;
    }
  }

  /** Before the turn: forged tokens name keys that nobody has, and would hold places while these are looked for. */
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

/** The turn of a call did not come. */
export const isApiLimit = (error: unknown): boolean =>
  error instanceof Fault && (error.code === 'API_ACCOUNT_LIMIT' || error.code === 'API_NETWORK_LIMIT');

/** Whether calls of this path are told of the limits of API calls. */
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
  // Of a body that is too long only a part was read.
  request.resume();
};

/** Where the listener of hono looks for a body that was read already. */
type Read = IncomingMessage & { rawBody?: Buffer };

/**
 * Reads the body of a call before the call's turn: a caller that sends it a byte at a time, or never, holds no place that others wait for.
 * false: it broke off. Of a body that is too long no more is read than shows it; the app refuses it.
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

/** The app reads no body of GET and HEAD, and refuses one that is too long by its length alone. */
const isReadHere = ({ method, headers }: IncomingMessage): boolean => {
  if (method === 'GET' || method === 'HEAD') return false;
  if (headers['transfer-encoding'] !== undefined) return true;
  const length = Number(headers['content-length'] ?? 0);
  return length > 0 && length <= LIMITS.BODY_MAX_BYTES;
};
