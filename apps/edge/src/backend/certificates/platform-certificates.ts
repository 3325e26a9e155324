// The certificates that the platform keeps, at an edge: a snapshot, then each that changes, asked for by itself. Copies of them lie on the disk,
// so that an edge that starts while the platform is away shows them, too.
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

/** certificates that an edge knows; a snapshot with more is not taken */
const CERTIFICATES_MAX = 100_000;
/** one line of the snapshot: a chain and its key */
const CERTIFICATE_LINE_MAX_BYTES = 256 * 1024;
/** for the whole snapshot of certificates; 10,000 take some seconds */
const CERTIFICATES_SNAPSHOT_MS = 120_000;
/** how long certificates are read in one turn of the event loop: to try a pair takes some tenths of a millisecond */
const CERTIFICATES_TURN_MS = 5;
/** changed certificates that are asked for at once */
const CERTIFICATE_FETCHES_AT_ONCE = 4;
/** changed certificates that wait to be asked for; with more the whole snapshot is taken instead */
export const CERTIFICATE_FETCHES_MAX = 1000;
/** the pause after one that was not answered */
export const CERTIFICATE_FETCH_AGAIN_MS = 2000;

export interface PlatformCertificatesOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly link: Pick<PlatformLink, 'certificates' | 'certificate' | 'challenge'>;
  /** null: none are kept on the disk. */
  readonly copies: { readonly folder: string; readonly credential: Secret } | null;
}

interface Row {
  readonly known: KnownCertificate;
  /** What is shown; null: nothing yet. */
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
  /** By name: which of them is for it. */
  readonly #names = new Map<string, string>();
  #listener: CertificateListener = { onPair: () => null, onGone: () => {} };
  /** Those that changed and were not told yet. */
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
    // A platform of before has none.
    if (this.#isRefused && !this.#hasSaidClear) return Promise.resolve(null);
    return this.#challengeLookup.find(key, this.#isOnOrder('tlsName' in key ? key.tlsName : key.host));
  }

  /** An order for it is under way, or is tried again. */
  #isOnOrder(name: string): boolean {
    const id = this.#names.get(name);
    return id !== undefined && this.#rows.get(id)?.known.state !== 'valid';
  }

  // ---- how they come ----

  /** What the last run had. Never rejects. */
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

  /** Each sign of life of the platform; `isForgetful`: changes were missed. */
  platformHeard(isForgetful: boolean): void {
    if (isForgetful) this.#takeAnew();
    else if (!this.#isSettled && this.#taking.current === null) this.#takeAnew();
  }

  /** It had been away, and may be another version now. */
  platformBack(): void {
    if (this.#isRefused) this.#takeAnew();
  }

  changed({ certificate_id: id }: CertificateChange): void {
    if (this.#isRefused) return;
    this.#challengeLookup.forget(this.#rows.get(id)?.known.names ?? []);
    this.#changed.add(id);
    if (this.#changed.size > CERTIFICATE_FETCHES_MAX) {
      // The snapshot says the same in fewer calls.
      this.#changed.clear();
      this.#takeAnew();
    } else this.#fetchOn();
  }

  // ---- one by one ----

  /** Not beside a snapshot, which may have an older one. */
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
      // A change that came meanwhile asks for it once more.
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
      // What is under way may be older than what is told now.
      await Promise.all(this.#fetching);
      try {
        await this.#snapshot();
        this.#isSettled = true;
        this.#isRefused = false;
      } catch (error) {
        if (this.#ending.signal.aborted) return;
        if (this.#isToldInClear(error)) return;
        // A platform of before knows no such call, and has none.
        this.#isRefused = error instanceof LinkFailure && error.kind === 'refused';
        this.#isSettled = this.#isRefused;
        const reason = error instanceof Error ? error.message : String(error);
        if (this.#isRefused) logger.debug({ reason }, 'platform does not provide certificates for edges');
        else logger.warn({ reason }, 'cannot fetch certificates from the platform; known certificates stay in use');
      }
    }
  }

  /** Over a link that others can read no key is told. Said once: it stays so until somebody changes the link. */
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

  /** Row by row, in turns: visitors do not wait for it. */
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
      // The change that it is at: those that come meanwhile are asked for afterwards in any case.
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
    // The edge copies a pair only after it has loaded that pair, and only this edge can seal a copy: a pair from a copy is not tested again.
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

  /** The same object where it is the same pair: it is tried once, and lies in memory once. */
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

  /** null: there is nothing to show after a start. */
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

/** Work of one turn of the event loop, and no more. */
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
