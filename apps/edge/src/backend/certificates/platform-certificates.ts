// Certificates from the platform. The edge loads a snapshot, then fetches each changed certificate. Copies on disk let the edge start
// with its certificates while the platform is unreachable.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ChallengeAnswer } from '@tunnel/certificates/acme';
import { type EdgeCertificate, type EdgeChange, edgeCertificate } from '@tunnel/contract';
import type { CertificatePair } from '@tunnel/http-shell';
import { type Clock, type Logger, type Secret, SingleFlight, type Timer } from '@tunnel/runtime';
import { LinkFailure, type PlatformLink } from '../platform-link.ts';
import { linesIn } from '../stream-lines.ts';
import { CertificateCopies } from './certificate-copies.ts';
import { ChallengeLookup } from './challenge-lookup.ts';
import type { AskedChallenge, CertificateListener, EdgeCertificates, KnownCertificate } from './edge-certificates.ts';

/** Maximum certificates on an edge. A larger snapshot is rejected. */
const CERTIFICATES_MAX = 100_000;
/** Maximum size of a line in the snapshot, which contains a certificate chain and its private key. */
const CERTIFICATE_LINE_MAX_BYTES = 256 * 1024;
/** Timeout for loading the snapshot of certificates. 10,000 certificates take some seconds. */
const CERTIFICATES_SNAPSHOT_MS = 120_000;
/**
 * Maximum time for loading certificates within a turn of the event loop. Testing a certificate with its key takes some tenths of a
 * millisecond.
 */
const CERTIFICATES_TURN_MS = 5;
/** Maximum concurrent requests for changed certificates. */
const CERTIFICATE_FETCHES_AT_ONCE = 4;
/** Maximum changed certificates waiting to be fetched. Above the limit, the edge loads the whole snapshot instead. */
export const CERTIFICATE_FETCHES_MAX = 1000;
/** Pause after a failed request for a certificate. */
export const CERTIFICATE_FETCH_AGAIN_MS = 2000;

export interface PlatformCertificatesOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly link: Pick<PlatformLink, 'certificates' | 'certificate' | 'challenge'>;
  /** Folder and key for copies on disk. Null if no copies are kept. */
  readonly copies: { readonly folder: string; readonly credential: Secret } | null;
}

interface Row {
  readonly known: KnownCertificate;
  /** Certificate and key in use. Null if there is no usable certificate yet. */
  readonly pair: CertificatePair | null;
}

type CertificateChange = Extract<EdgeChange, { kind: 'certificate-changed' }>;

const FORBIDDEN = 403;

export class PlatformCertificates implements EdgeCertificates {
  readonly orders = null;
  readonly #options: PlatformCertificatesOptions;
  readonly #challengeLookup: ChallengeLookup;
  readonly #copies: CertificateCopies | null;
  readonly #rows = new Map<string, Row>();
  /** Certificate id by name. */
  readonly #names = new Map<string, string>();
  #listener: CertificateListener = { onPair: () => null, onGone: () => {} };
  /** Ids of changed certificates that were not fetched yet. */
  readonly #changed = new Set<string>();
  readonly #fetching = new Set<Promise<void>>();
  #again: Timer | undefined;
  readonly #taking = new SingleFlight(() => this.#take());
  #isTakenAgain = false;
  #isSettled = false;
  #isRefused = false;
  #hasSaidClear = false;
  readonly #ending = new AbortController();

  constructor(options: PlatformCertificatesOptions) {
    this.#options = options;
    this.#challengeLookup = new ChallengeLookup(options);
    const { copies } = options;
    this.#copies =
      copies === null ? null : new CertificateCopies({ ...options, ...copies, read: (id) => this.#copyOf(id) });
  }

  follow(listener: CertificateListener): void {
    this.#listener = listener;
  }

  async list(): Promise<readonly KnownCertificate[]> {
    return Array.from(this.#rows.values(), ({ known }) => known);
  }

  isWanted(name: string): boolean {
    return this.#names.has(name);
  }

  findChallenge(key: AskedChallenge): Promise<ChallengeAnswer | null> {
    // An older platform does not provide certificates, so it has no challenges.
    if (this.#isRefused && !this.#hasSaidClear) return Promise.resolve(null);
    return this.#challengeLookup.find(key, this.#isOnOrder('tlsName' in key ? key.tlsName : key.host));
  }

  /** Whether an order for the name is in progress or will be retried. */
  #isOnOrder(name: string): boolean {
    const id = this.#names.get(name);
    return id !== undefined && this.#rows.get(id)?.known.state !== 'valid';
  }

  // ---- how they come ----

  /** Loads the certificates that the last run copied to disk. Never rejects. */
  async start(): Promise<void> {
    const slice = new TurnSlice();
    await this.#copies?.load(async (certificate) => {
      this.#apply(certificate, true);
      await slice.passed();
    });
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    this.#challengeLookup.stop();
    this.#again?.cancel();
    await this.#taking.current;
    await this.#copies?.close();
  }

  /** Called after each response of the platform. `isForgetful`: the edge has missed changes. */
  platformHeard(isForgetful: boolean): void {
    if (isForgetful) this.#takeAnew();
    else if (!this.#isSettled && this.#taking.current === null) this.#takeAnew();
  }

  /** Called when the platform is reachable again, possibly with a newer version. */
  platformBack(): void {
    if (this.#isRefused) this.#takeAnew();
  }

  changed({ certificate_id: id }: CertificateChange): void {
    if (this.#isRefused) return;
    this.#challengeLookup.forget(this.#rows.get(id)?.known.names ?? []);
    this.#changed.add(id);
    if (this.#changed.size > CERTIFICATE_FETCHES_MAX) {
      // A snapshot provides all changed certificates with a single request.
      this.#changed.clear();
      this.#takeAnew();
    } else this.#fetchOn();
  }

  // ---- one by one ----

  /** Fetches changed certificates. Does nothing while a snapshot is being loaded, because the snapshot may contain older certificates. */
  #fetchOn(): void {
    if (this.#taking.current !== null || this.#again !== undefined || this.#ending.signal.aborted) return;
    for (const id of this.#changed) {
      if (this.#fetching.size >= CERTIFICATE_FETCHES_AT_ONCE) return;
      this.#changed.delete(id);
      const fetching = this.#fetch(id).finally(() => {
        this.#fetching.delete(fetching);
        this.#fetchOn();
      });
      this.#fetching.add(fetching);
    }
  }

  async #fetch(id: string): Promise<void> {
    const { link, clock } = this.#options;
    try {
      const certificate = await link.certificate(id);
      // If the certificate changed again meanwhile, the next request fetches the newer version.
      if (this.#ending.signal.aborted) return;
      if (certificate === null) this.#remove(id);
      else this.#apply(certificate);
    } catch (error) {
      if (this.#isToldInClear(error)) return;
      this.#changed.add(id);
      this.#again ??= clock.setTimeout(() => {
        this.#again = undefined;
        this.#fetchOn();
      }, CERTIFICATE_FETCH_AGAIN_MS);
    }
  }

  // ---- all of them ----

  #takeAnew(): void {
    this.#isSettled = false;
    this.#isTakenAgain = true;
    if (this.#taking.current === null) void this.#taking.run().then(() => this.#fetchOn());
  }

  async #take(): Promise<void> {
    const { logger } = this.#options;
    while (this.#isTakenAgain && !this.#ending.signal.aborted) {
      this.#isTakenAgain = false;
      // Requests in progress finish first, because their responses may be older than the snapshot.
      await Promise.all(this.#fetching);
      try {
        await this.#snapshot();
        this.#isSettled = true;
        this.#isRefused = false;
      } catch (error) {
        if (this.#ending.signal.aborted) return;
        if (this.#isToldInClear(error)) return;
        // An older platform rejects the request for certificates, because it provides none.
        this.#isRefused = error instanceof LinkFailure && error.kind === 'refused';
        this.#isSettled = this.#isRefused;
        const reason = error instanceof Error ? error.message : String(error);
        if (this.#isRefused) logger.debug({ reason }, 'platform does not provide certificates for edges');
        else logger.warn({ reason }, 'cannot fetch certificates from the platform; known certificates stay in use');
      }
    }
  }

  /**
   * Handles a rejection because of an unencrypted connection, over which the platform sends no private keys. Returns false for other
   * errors. Logged only once, because the connection stays unencrypted until the operator changes the URL.
   */
  #isToldInClear(error: unknown): boolean {
    if (!(error instanceof LinkFailure) || error.status !== FORBIDDEN) return false;
    this.#isRefused = true;
    this.#isSettled = true;
    this.#changed.clear();
    if (!this.#hasSaidClear) {
      const { logger } = this.#options;
      const hint = 'set `[server] platform_url` to an https URL';
      logger.error({ hint }, 'platform does not send certificates over an unencrypted connection');
    }
    this.#hasSaidClear = true;
    return true;
  }

  /** Loads the snapshot in small steps, so that visitors do not wait. */
  async #snapshot(): Promise<void> {
    const ending = new AbortController();
    const end = (): void => ending.abort();
    this.#ending.signal.addEventListener('abort', end, { once: true });
    const timer = this.#options.clock.setTimeout(end, CERTIFICATES_SNAPSHOT_MS);
    this.#copies?.hold(true);
    try {
      const body = await this.#options.link.certificates(ending.signal);
      await this.#takeLines(body, ending.signal);
    } finally {
      this.#copies?.hold(false);
      timer.cancel();
      end();
      this.#ending.signal.removeEventListener('abort', end);
    }
  }

  async #takeLines(body: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void> {
    const told = new Set<string>();
    const slice = new TurnSlice();
    for await (const line of linesIn(body, { maxBytes: CERTIFICATE_LINE_MAX_BYTES, signal })) {
      const said = JSON.parse(line) as { readonly at?: unknown; readonly end?: unknown };
      if (said.end === true) return this.#keepOnly(told);
      // The line contains the change id of the snapshot, which is not needed: certificates that change meanwhile are fetched afterwards
      // in any case.
      if (said.at !== undefined) continue;
      const certificate = edgeCertificate.parse(said);
      told.add(certificate.id);
      if (told.size > CERTIFICATES_MAX) throw new Error(`more than ${told.size - 1}`);
      this.#apply(certificate);
      await slice.passed();
    }
    throw new Error('the list of certificates is incomplete');
  }

  #keepOnly(told: ReadonlySet<string>): void {
    for (const id of [...this.#rows.keys()]) if (!told.has(id)) this.#remove(id);
    void this.#copies?.prune(told);
  }

  // ---- what is known ----

  #apply(told: EdgeCertificate, isCopy = false): void {
    const { id, names } = told;
    const before = this.#rows.get(id);
    const pair = this.#pairOf(told, before);
    const isSame = before !== undefined && pair === before.pair && sameNames(names, before.known.names);
    if (pair === null && before?.pair != null) this.#listener.onGone(id);
    // The edge copies a pair only after it has loaded that pair, and only this edge can encrypt a copy: a pair from a copy is not tested
    // again.
    const isShown = isSame || pair === null || this.#show(told, pair, isCopy);
    this.#nameIt(id, before?.known.names ?? [], names);
    this.#rows.set(id, { known: knownOf(told), pair: isShown ? pair : (before?.pair ?? null) });
    if (!isCopy && !isSame && isShown) this.#copies?.changed(id);
  }

  #show({ id, names }: EdgeCertificate, pair: CertificatePair, isTried: boolean): boolean {
    const problem = this.#listener.onPair(id, names, pair, isTried);
    if (problem === null) return true;
    this.#options.logger.warn(
      { names, reason: problem },
      'certificate rejected; the previous certificate stays in use',
    );
    return false;
  }

  /** Returns the existing object if certificate and key are unchanged, so that a pair is tested only once and kept in memory only once. */
  #pairOf({ pair }: EdgeCertificate, before: Row | undefined): CertificatePair | null {
    if (pair === null) return null;
    const told = { cert: Buffer.from(pair.chain), key: Buffer.from(pair.key) };
    const known = before?.pair ?? null;
    return known !== null && known.cert.equals(told.cert) && known.key.equals(told.key) ? known : told;
  }

  #remove(id: string): void {
    const row = this.#rows.get(id);
    if (row === undefined) return;
    this.#rows.delete(id);
    this.#nameIt(id, row.known.names, []);
    this.#challengeLookup.forget(row.known.names);
    if (row.pair !== null) this.#listener.onGone(id);
    this.#copies?.changed(id);
  }

  #nameIt(id: string, before: readonly string[], names: readonly string[]): void {
    for (const name of before) if (this.#names.get(name) === id) this.#names.delete(name);
    for (const name of names) this.#names.set(name, id);
  }

  /** Returns the content of a certificate's copy on disk. Null if there is no usable certificate. */
  #copyOf(id: string): EdgeCertificate | null {
    const row = this.#rows.get(id);
    if (row === undefined || row.pair === null) return null;
    const { names, isOperators, issuer, notBefore, notAfter } = row.known;
    return {
      id,
      names: [...names],
      is_operators: isOperators,
      state: 'valid',
      issuer,
      not_before: notBefore,
      not_after: notAfter,
      renew_at: null,
      last_error: null,
      pair: { chain: row.pair.cert.toString(), key: row.pair.key.toString() },
    };
  }
}

/** Limits work to short slices, with a turn of the event loop in between. */
class TurnSlice {
  #beganMs = performance.now();

  async passed(): Promise<void> {
    if (performance.now() - this.#beganMs < CERTIFICATES_TURN_MS) return;
    await nextTurn();
    this.#beganMs = performance.now();
  }
}

const sameNames = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && one.every((name, at) => name === other[at]);

const knownOf = (told: EdgeCertificate): KnownCertificate => ({
  id: told.id,
  names: told.names,
  isOperators: told.is_operators,
  state: told.state,
  issuer: told.issuer,
  notBefore: told.not_before,
  notAfter: told.not_after,
  renewAt: told.renew_at,
  lastError: told.last_error,
});
