// DNS lookups of names chosen by strangers: paced, with limits for time and size. A lookup results in found, absent or no answer.
import { Resolver } from 'node:dns/promises';
import type { Clock } from '@tunnel/runtime';
import { type DnsAnswer, foldName } from '../domains/domain-proof.rules.ts';
import { LookupPace } from './lookup-pace.ts';

/** Time limit of a DNS query to a name server. */
export const LOOKUP_TIMEOUT_MS = 2000;
/** Number of attempts to query a name server. */
export const LOOKUP_TRIES = 2;
/** Time limit of a lookup over all servers. An unreadable proof is looked up again later. */
export const LOOKUP_TOTAL_MS = 10_000;
/** Maximum number of CNAME records followed from a name. */
const CHAIN_MAX = 8;
/** Maximum number of records read from a DNS answer; the rest is ignored. */
const ANSWER_RECORDS_MAX = 100;
/** Maximum length of a TXT record, its strings joined. Longer records cannot be valid proofs and are ignored. */
const TEXT_MAX_CHARS = 1024;

export interface DnsLookupsOptions {
  /** Name servers, from `[dns] resolvers`: `address` or `address:port`. Empty for the system's resolvers. */
  readonly resolvers: readonly string[];
  readonly clock: Clock;
  /** First timeout of a query in real time, because Node's resolver accepts no clock. Default LOOKUP_TIMEOUT_MS. */
  readonly timeoutMs?: number;
}

type Ask = (resolver: Resolver) => Promise<readonly string[]>;

/** The name or record does not exist, or the name is too long to exist. */
const ABSENT_CODES = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME']);
const ABSENT: DnsAnswer = { kind: 'absent' };
const NAME_MAX_CHARS = 253;

/**
 * Limits for DNS lookups: each holds a socket, and the name servers of strangers must not be flooded. The queue holds ten seconds of
 * lookups.
 */
const LOOKUPS = { atOnce: 50, perSecond: 20, waitingMax: 200 };

export class DnsLookups {
  readonly #servers: readonly string[];
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #pace: LookupPace;
  readonly #unanswered = new Set<(answer: DnsAnswer) => void>();
  readonly #open = new Set<Resolver>();
  #isClosed = false;

  constructor({ resolvers, clock, timeoutMs = LOOKUP_TIMEOUT_MS }: DnsLookupsOptions) {
    this.#servers = resolvers;
    this.#timeoutMs = timeoutMs;
    // Throws if an entry of `[dns] resolvers` is not an address.
    this.#newResolver();
    this.#clock = clock;
    this.#pace = new LookupPace(LOOKUPS, clock);
  }

  /** Follows CNAMEs in order until `isEnd`. A loop or a long chain ends the list. */
  async chain(name: string, isEnd: (name: string) => boolean): Promise<DnsAnswer> {
    const names: string[] = [];
    let at = name;
    while (names.length < CHAIN_MAX) {
      const asked = at;
      const answer = await this.#lookUp(asked, (resolver) => resolver.resolveCname(asked));
      // A partial chain counts as no answer, because the decisive name may be missing.
      if (answer.kind === 'no-answer') return answer;
      const [next] = answer.kind === 'found' ? answer.values : [];
      if (next === undefined || names.some((seen) => foldName(seen) === foldName(next))) break;
      names.push(next);
      if (isEnd(next)) break;
      at = next;
    }
    return names.length === 0 ? ABSENT : { kind: 'found', values: names };
  }

  /** Looks up the TXT records of a name, with the strings of a record joined. */
  texts(name: string): Promise<DnsAnswer> {
    return this.#lookUp(name, async (resolver) => {
      const records = await resolver.resolveTxt(name);
      return records
        .slice(0, ANSWER_RECORDS_MAX)
        .map((strings) => strings.join(''))
        .filter((text) => text.length <= TEXT_MAX_CHARS);
    });
  }

  /** Looks up the IPv4 and IPv6 addresses of a name. */
  async addresses(name: string): Promise<DnsAnswer> {
    const answers = await Promise.all([
      this.#lookUp(name, (resolver) => resolver.resolve4(name)),
      this.#lookUp(name, (resolver) => resolver.resolve6(name)),
    ]);
    const values = answers.flatMap((answer) => (answer.kind === 'found' ? answer.values : []));
    if (values.length > 0) return { kind: 'found', values };
    return answers.find(({ kind }) => kind === 'no-answer') ?? ABSENT;
  }

  /** Found if a zone begins at the name, where no CNAME can exist. */
  zone(name: string): Promise<DnsAnswer> {
    return this.#lookUp(name, async (resolver) => [(await resolver.resolveSoa(name)).nsname]);
  }

  /** Closes the resolver. Running and queued lookups end without an answer. */
  close(): void {
    this.#isClosed = true;
    this.#pace.close();
    for (const resolver of this.#open) resolver.cancel();
    for (const settle of this.#unanswered) settle({ kind: 'no-answer', reason: 'the server is stopping' });
  }

  #lookUp(name: string, ask: Ask): Promise<DnsAnswer> {
    if (name.length > NAME_MAX_CHARS) return Promise.resolve(ABSENT);
    if (this.#isClosed) return Promise.resolve({ kind: 'no-answer', reason: 'the server is stopping' });
    return new Promise((resolve) => {
      const settle = (answer: DnsAnswer): void => {
        this.#unanswered.delete(settle);
        resolve(answer);
      };
      this.#unanswered.add(settle);
      const entered = this.#pace.enter(() => void this.#ask(ask, settle));
      if (!entered) settle({ kind: 'no-answer', reason: 'too many lookups are queued' });
    });
  }

  /** The slot is released when the resolver has finished, possibly after the timeout. */
  async #ask(ask: Ask, settle: (answer: DnsAnswer) => void): Promise<void> {
    const timer = this.#clock.setTimeout(() => settle({ kind: 'no-answer', reason: 'ETIMEOUT' }), LOOKUP_TOTAL_MS);
    const resolver = this.#newResolver();
    this.#open.add(resolver);
    try {
      settle(answerOf(await ask(resolver)));
    } catch (error) {
      const { code = 'unknown' } = error as NodeJS.ErrnoException;
      settle(ABSENT_CODES.has(code) ? ABSENT : { kind: 'no-answer', reason: code });
    } finally {
      timer.cancel();
      this.#open.delete(resolver);
      this.#pace.done();
    }
  }

  /**
   * A new resolver per lookup: a shared resolver adapts its timeouts to earlier answers, below the needs of a distant server, and fails all
   * running queries after a single unreadable answer (seen with c-ares 1.34).
   */
  #newResolver(): Resolver {
    const resolver = new Resolver({ timeout: this.#timeoutMs, tries: LOOKUP_TRIES });
    if (this.#servers.length > 0) resolver.setServers(this.#servers);
    return resolver;
  }
}

const answerOf = (values: readonly string[]): DnsAnswer =>
  values.length === 0 ? ABSENT : { kind: 'found', values: values.slice(0, ANSWER_RECORDS_MAX) };
