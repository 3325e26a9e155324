// ACME test server on loopback (RFC 8555 and RFC 9773). Really validates challenges, and fails on command.
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { calculateJwkThumbprint, type FlattenedJWSInput, flattenedVerify, type JWK } from 'jose';
import { testCertificate } from '../tls/certificates.ts';

import { type AcmeFault, type AcmeStep, refusalOf } from './acme-faults.ts';
import { Refusal, readJws, type SignedCall } from './read-jws.ts';
import { BadRequest, TestAuthority, type TestCertificate } from './test-authority.ts';
import { type ValidationSource, validateChallenge } from './validate-challenge.ts';

export interface AcmeServerOptions extends ValidationSource {
  readonly challenges?: readonly string[];
  readonly lifeMs?: number;
  readonly profiles?: Readonly<Record<string, string>>;
  readonly eab?: { readonly kid: string; readonly hmacKey: string };
  /** Whether valid authorizations are reused for further orders. */
  readonly reuse?: boolean;
}

interface Challenge {
  readonly type: string;
  readonly id: string;
  readonly token: string;
  status: string;
  error?: object;
}

interface Authorization {
  readonly id: string;
  readonly account: string;
  readonly name: string;
  readonly challenges: Challenge[];
  status: string;
}

export interface TestOrder {
  readonly id: string;
  readonly account: string;
  readonly names: readonly string[];
  readonly replaces: string | null;
  readonly profile: string | null;
  readonly authorizations: readonly string[];
  status: string;
  certificate: TestCertificate | null;
}

interface Account {
  readonly url: string;
  readonly jwk: JWK;
  readonly thumbprint: string;
  contact: unknown;
}

const DAY_MS = 24 * 3_600_000;
const RANDOM_BYTES = 12;
const id = (): string => randomBytes(RANDOM_BYTES).toString('base64url');
const isoOf = (at: number): string => new Date(at).toISOString();

export class AcmeServer {
  readonly orders: TestOrder[] = [];
  readonly calls: AcmeStep[] = [];
  readonly accounts = new Map<string, Account>();
  /** Whether finalized orders stay in status `processing`. */
  hangs = false;
  /** Renewal window for all certificates. Null uses the default, which is the first half of the last third of a certificate's lifetime. */
  renewalWindow: { readonly start: number; readonly end: number } | null = null;
  renewalRetryAfter = '21600';
  /** Rejects every n-th nonce although the nonce is valid. 0 disables the fault. */
  refuseNonceEvery = 0;
  readonly #options: AcmeServerOptions;
  readonly #authority: TestAuthority;
  readonly #server = createServer(testCertificate());
  readonly #nonces = new Set<string>();
  readonly #authorizations = new Map<string, Authorization>();
  readonly #faults: { fault: AcmeFault; left: number }[] = [];
  readonly #replaced = new Set<string>();
  #noncesUsed = 0;

  private constructor(options: AcmeServerOptions, authority: TestAuthority) {
    this.#options = options;
    this.#authority = authority;
  }

  static async start(options: AcmeServerOptions): Promise<AcmeServer> {
    const server = new AcmeServer(options, await TestAuthority.create());
    server.#server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      void server.#answer(request, response);
    });
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get url(): string {
    return `https://localhost:${(this.#server.address() as AddressInfo).port}`;
  }

  get directory(): string {
    return `${this.url}/directory`;
  }

  /** PEM certificate for verifying the TLS connection to the ACME server itself. */
  get ca(): string {
    return testCertificate().cert;
  }

  /** PEM root certificate of the certificates issued by the server. */
  get root(): string {
    return this.#authority.rootPem;
  }

  fail(fault: AcmeFault): void {
    this.#faults.push({ fault, left: fault.times });
  }

  /** Returns the number of calls of a step. */
  count(step: AcmeStep): number {
    return this.calls.filter((called) => called === step).length;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, step = '', ...rest] = (request.url ?? '').split('/');
    this.calls.push(step as AcmeStep);
    response.setHeader('replay-nonce', this.#newNonce());
    try {
      const faulty = this.#faults.find(
        ({ fault, left }) => left > 0 && (fault.on === 'all' || fault.on.includes(step as AcmeStep)),
      );
      if (faulty !== undefined) {
        faulty.left -= 1;
        const { answer } = faulty.fault;
        if (answer.kind === 'silence') return;
        if (answer.kind === 'cut') return void request.socket.destroy();
        throw refusalOf(answer);
      }
      await this.#route(step as AcmeStep, rest.join('/'), request, response);
    } catch (error) {
      const refusal = error instanceof Refusal ? error : new Refusal(500, 'serverInternal', String(error));
      const { status, type, message, headers } = refusal;
      const body = JSON.stringify({ type: `urn:ietf:params:acme:error:${type}`, detail: message, status });
      response.writeHead(status, { 'content-type': 'application/problem+json', ...headers }).end(body);
    }
  }

  async #route(step: AcmeStep, key: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (step === 'directory') return send(response, 200, this.#directoryBody());
    if (step === 'new-nonce') return void response.writeHead(204).end();
    if (step === 'renewal-info') return this.#renewalInfo(key, response);
    if (request.method !== 'POST') throw new Refusal(405, 'malformed', 'POST alone');
    const url = `${this.url}${request.url ?? ''}`;
    const call = await readJws(request.headers['content-type'], await textOf(request), {
      url,
      useNonce: (nonce) => this.#useNonce(nonce),
      keyOf: (kid) => this.accounts.get(kid)?.jwk,
    });
    if (step === 'new-account') return this.#newAccount(call, url, response);
    if (call.kid === null) throw new Refusal(400, 'malformed', 'kid is needed');
    if (step === 'account') return this.#changeAccount(call, response);
    if (step === 'new-order') return this.#newOrder(call, response);
    if (step === 'authorization') return send(response, 200, this.#authorizationBody(this.#authorizationOf(key, call)));
    if (step === 'challenge') return this.#challenge(key, call, response);
    const order = this.orders.find((one) => one.id === key && one.account === call.kid);
    if (order === undefined) throw new Refusal(404, 'malformed', 'no such order');
    if (step === 'order') return this.#sendOrder(order, response);
    if (step === 'finalize') return this.#finalize(order, call, response);
    if (order.certificate === null) throw new Refusal(404, 'malformed', 'no certificate yet');
    response.writeHead(200, { 'content-type': 'application/pem-certificate-chain' }).end(order.certificate.chain);
  }

  #directoryBody(): object {
    const { profiles, eab } = this.#options;
    const at = (step: AcmeStep): string => `${this.url}/${step}`;
    return {
      newNonce: at('new-nonce'),
      newAccount: at('new-account'),
      newOrder: at('new-order'),
      renewalInfo: at('renewal-info'),
      meta: { ...(profiles && { profiles }), ...(eab && { externalAccountRequired: true }) },
    };
  }

  async #newAccount({ jwk, payload }: SignedCall, url: string, response: ServerResponse): Promise<void> {
    if (jwk === null) throw new Refusal(400, 'malformed', 'jwk is needed');
    const thumbprint = await calculateJwkThumbprint(jwk);
    const known = [...this.accounts.values()].find((one) => one.thumbprint === thumbprint);
    if (known === undefined) {
      if (payload?.['termsOfServiceAgreed'] !== true)
        throw new Refusal(403, 'userActionRequired', 'agree to the terms');
      await this.#checkBinding(payload['externalAccountBinding'], jwk, url);
    }
    const account = known ?? { url: `${this.url}/account/${id()}`, jwk, thumbprint, contact: payload?.['contact'] };
    this.accounts.set(account.url, account);
    response.setHeader('location', account.url);
    send(response, known === undefined ? 201 : 200, { status: 'valid' });
  }

  async #checkBinding(binding: unknown, jwk: JWK, url: string): Promise<void> {
    const { eab } = this.#options;
    if (eab === undefined) return;
    if (binding === undefined) throw new Refusal(403, 'externalAccountRequired', 'an account of ours is needed');
    try {
      const secret = Buffer.from(eab.hmacKey, 'base64url');
      const { payload, protectedHeader } = await flattenedVerify(binding as FlattenedJWSInput, secret);
      const { kid, url: bound } = protectedHeader as { kid?: string; url?: string };
      if (kid !== eab.kid || bound !== url) throw new Error('header');
      if (Buffer.from(payload).toString() !== JSON.stringify(jwk)) throw new Error('key');
    } catch {
      throw new Refusal(403, 'unauthorized', 'the binding is wrong');
    }
  }

  #changeAccount({ kid, payload }: SignedCall, response: ServerResponse): void {
    const account = this.accounts.get(kid ?? '');
    if (account !== undefined && payload?.['contact'] !== undefined) account.contact = payload['contact'];
    send(response, 200, { status: 'valid', contact: account?.contact });
  }

  #newOrder({ kid, payload }: SignedCall, response: ServerResponse): void {
    const names = ((payload?.['identifiers'] ?? []) as { value: string }[]).map(({ value }) => value);
    const replaces = (payload?.['replaces'] as string | undefined) ?? null;
    const profile = (payload?.['profile'] as string | undefined) ?? null;
    if (names.length === 0) throw new Refusal(400, 'malformed', 'no identifiers');
    if (profile !== null && this.#options.profiles?.[profile] === undefined)
      throw new Refusal(400, 'invalidProfile', profile);
    if (replaces !== null && this.#replaced.has(replaces)) throw new Refusal(409, 'alreadyReplaced', 'it was replaced');
    if (replaces !== null && this.#issuedAs(replaces) === undefined)
      throw new Refusal(400, 'malformed', 'replaces what?');
    const account = kid ?? '';
    const authorizations = names.map((name) => this.#authorize(account, name).id);
    const order: TestOrder = {
      id: id(),
      account,
      names,
      replaces,
      profile,
      authorizations,
      status: 'pending',
      certificate: null,
    };
    this.orders.push(order);
    response.setHeader('location', `${this.url}/order/${order.id}`);
    this.#sendOrder(order, response, 201);
  }

  #authorize(account: string, name: string): Authorization {
    const all = [...this.#authorizations.values()];
    const known = all.find((one) => one.account === account && one.name === name && one.status === 'valid');
    if (this.#options.reuse === true && known !== undefined) return known;
    const types = this.#options.challenges ?? ['http-01', 'tls-alpn-01', 'dns-01'];
    const offered = name.startsWith('*.') ? ['dns-01'] : types;
    const challenges = offered.map((type) => ({ type, id: id(), token: id(), status: 'pending' }));
    const made = { id: id(), account, name, challenges, status: 'pending' };
    this.#authorizations.set(made.id, made);
    return made;
  }

  #authorizationOf(key: string, { kid }: SignedCall): Authorization {
    const found = this.#authorizations.get(key);
    if (found === undefined || found.account !== kid) throw new Refusal(404, 'malformed', 'no such authorization');
    return found;
  }

  #authorizationBody({ name, status, challenges }: Authorization): object {
    const wildcard = name.startsWith('*.');
    return {
      status,
      identifier: { type: 'dns', value: wildcard ? name.slice(2) : name },
      ...(wildcard && { wildcard }),
      challenges: challenges.map((one) => this.#challengeBody(one)),
    };
  }

  #challengeBody({ type, id: key, token, status, error }: Challenge): object {
    return { type, url: `${this.url}/challenge/${key}`, token, status, ...(error && { error }) };
  }

  #challenge(key: string, call: SignedCall, response: ServerResponse): void {
    const all = [...this.#authorizations.values()].filter(({ account }) => account === call.kid);
    const authorization = all.find(({ challenges }) => challenges.some((one) => one.id === key));
    const challenge = authorization?.challenges.find((one) => one.id === key);
    if (authorization === undefined || challenge === undefined)
      throw new Refusal(404, 'malformed', 'no such challenge');
    // A read (POST-as-GET) changes nothing. A payload `{}` asks the server to start the validation.
    if (call.payload !== undefined && challenge.status === 'pending' && authorization.status === 'pending') {
      challenge.status = 'processing';
      void this.#validate(authorization, challenge);
    }
    send(response, 200, this.#challengeBody(challenge));
  }

  async #validate(authorization: Authorization, challenge: Challenge): Promise<void> {
    const { type, token } = challenge;
    const name = authorization.name.replace(/^\*\./, '');
    const keyAuthorization = `${token}.${this.accounts.get(authorization.account)?.thumbprint ?? ''}`;
    try {
      await validateChallenge({ type, name, token, keyAuthorization }, this.#options);
      challenge.status = 'valid';
      authorization.status = 'valid';
    } catch (error) {
      challenge.status = 'invalid';
      challenge.error = {
        type: 'urn:ietf:params:acme:error:unauthorized',
        detail: (error as Error).message,
        status: 403,
      };
      authorization.status = 'invalid';
    }
  }

  async #finalize(order: TestOrder, { payload }: SignedCall, response: ServerResponse): Promise<void> {
    if (this.#statusOf(order) !== 'ready') throw new Refusal(403, 'orderNotReady', `the order is ${order.status}`);
    const csr = Buffer.from(String(payload?.['csr']), 'base64url');
    order.status = 'processing';
    try {
      order.certificate = await this.#authority.issue(csr, order.names, this.#options.lifeMs ?? 90 * DAY_MS);
    } catch (error) {
      order.status = 'ready';
      throw error instanceof BadRequest ? new Refusal(400, 'badCSR', error.message) : error;
    }
    if (order.replaces !== null) this.#replaced.add(order.replaces);
    this.#sendOrder(order, response);
  }

  #statusOf(order: TestOrder): string {
    const statuses = order.authorizations.map((key) => this.#authorizations.get(key)?.status);
    if (order.status === 'pending' && statuses.every((status) => status === 'valid')) order.status = 'ready';
    if (order.status === 'pending' && statuses.includes('invalid')) order.status = 'invalid';
    if (order.status === 'processing' && order.certificate !== null && !this.hangs) order.status = 'valid';
    return order.status;
  }

  #sendOrder(order: TestOrder, response: ServerResponse, status = 200): void {
    const at = (step: AcmeStep, key: string): string => `${this.url}/${step}/${key}`;
    const now = this.#statusOf(order);
    send(response, status, {
      status: now,
      expires: isoOf(Date.now() + DAY_MS),
      identifiers: order.names.map((value) => ({ type: 'dns', value })),
      authorizations: order.authorizations.map((key) => at('authorization', key)),
      finalize: at('finalize', order.id),
      ...(now === 'valid' && { certificate: at('certificate', order.id) }),
      ...(now === 'invalid' && { error: { type: 'urn:ietf:params:acme:error:unauthorized', detail: 'not validated' } }),
    });
  }

  #issuedAs(renewalId: string): TestCertificate | undefined {
    return this.orders.find(({ certificate }) => certificate?.renewalId === renewalId)?.certificate ?? undefined;
  }

  #renewalInfo(renewalId: string, response: ServerResponse): void {
    const found = this.#issuedAs(renewalId);
    if (found === undefined) throw new Refusal(404, 'malformed', 'no such certificate');
    const { notBefore, notAfter } = found;
    const third = (notAfter - notBefore) / 3;
    const { start, end } = this.renewalWindow ?? { start: notAfter - third, end: notAfter - third / 2 };
    response.setHeader('retry-after', this.renewalRetryAfter);
    send(response, 200, { suggestedWindow: { start: isoOf(start), end: isoOf(end) } });
  }

  #newNonce(): string {
    const nonce = id();
    this.#nonces.add(nonce);
    return nonce;
  }

  #useNonce(nonce: string): boolean {
    this.#noncesUsed += 1;
    const known = this.#nonces.delete(nonce);
    return known && (this.refuseNonceEvery === 0 || this.#noncesUsed % this.refuseNonceEvery !== 0);
  }
}

const send = (response: ServerResponse, status: number, body: object): void => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
};

const textOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
};
