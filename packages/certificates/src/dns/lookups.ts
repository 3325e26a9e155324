// Look-ups in DNS that names of strangers cause: paced, bounded in time and in what is kept of an answer. Each ends in one of three ways: found, absent,
// no answer.
import { Resolver } from 'node:dns/promises';
import type { Clock } from '@tunnel/runtime';
import { type DnsAnswer, foldName } from '../domains/domain-proof.rules.ts';
import { LookupPace } from './lookup-pace.ts';

/** how long one server may take */
export const LOOKUP_TIMEOUT_MS = 2000;
/** how often each server is asked */
export const LOOKUP_TRIES = 2;
/** Time limit of one look-up over all servers. A proof that could not be read is looked up again later. */
export const LOOKUP_TOTAL_MS = 10_000;
/** CNAMEs that are followed from one name */
const CHAIN_MAX = 8;
/** records of one answer that are looked at; the rest is left out */
const ANSWER_RECORDS_MAX = 100;
/** of one TXT record, its strings joined; a longer one is none of ours, and left out */
const TEXT_MAX_CHARS = 1024;

export interface DnsLookupsOptions {
  /** `[dns] resolvers`: `address` or `address:port`; none: the system's. */
  readonly resolvers: readonly string[];
  readonly clock: Clock;
  /** First time limit of a question, in real time: the resolver of Node.js has no other. LOOKUP_TIMEOUT_MS unless given. */
  readonly timeoutMs?: number;
}

type Ask = (resolver: Resolver) => Promise<readonly string[]>;

/** The name is not there, has no such record, or could not have one: longer than a name can be. */
const ABSENT_CODES = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME']);
const ABSENT: DnsAnswer = { kind: 'absent' };
const NAME_MAX_CHARS = 253;

/** Each look-up holds a socket. Names come from strangers, and their servers are not ours to flood. Ten seconds of look-ups may wait. */
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
    // Throws where one is no address.
    this.#newResolver();
    this.#clock = clock;
    this.#pace = new LookupPace(LOOKUPS, clock);
  }

  /** Every name that CNAMEs lead to, in order, until one of which `isEnd` holds. One that leads in a circle, or too far, ends there. */
  async chain(name: string, isEnd: (name: string) => boolean): Promise<DnsAnswer> {
    const names: string[] = [];
    let at = name;
    while (names.length < CHAIN_MAX) {
      const asked = at;
      const answer = await this.#lookUp(asked, (resolver) => resolver.resolveCname(asked));
      // Half a chain is no answer: what counts may be in the other half.
      if (answer.kind === 'no-answer') return answer;
      const [next] = answer.kind === 'found' ? answer.values : [];
      if (next === undefined || names.some((seen) => foldName(seen) === foldName(next))) break;
      names.push(next);
      if (isEnd(next)) break;
      at = next;
    }
    return names.length === 0 ? ABSENT : { kind: 'found', values: names };
  }

  /** TXT, the strings of each record joined. */
  texts(name: string): Promise<DnsAnswer> {
    return this.#lookUp(name, async (resolver) => {
      const records = await resolver.resolveTxt(name);
      return records
        .slice(0, ANSWER_RECORDS_MAX)
        .map((strings) => strings.join(''))
        .filter((text) => text.length <= TEXT_MAX_CHARS);
    });
  }

  /** IPv4 and IPv6. */
  async addresses(name: string): Promise<DnsAnswer> {
    const answers = await Promise.all([
      this.#lookUp(name, (resolver) => resolver.resolve4(name)),
      this.#lookUp(name, (resolver) => resolver.resolve6(name)),
    ]);
    const values = answers.flatMap((answer) => (answer.kind === 'found' ? answer.values : []));
    if (values.length > 0) return { kind: 'found', values };
    return answers.find(({ kind }) => kind === 'no-answer') ?? ABSENT;
  }

  /** Whether a zone begins at the name, so that no CNAME can stand there: found or absent. */
  zone(name: string): Promise<DnsAnswer> {
    return this.#lookUp(name, async (resolver) => [(await resolver.resolveSoa(name)).nsname]);
  }

  /** Those that are under way, or wait, have no answer. */
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

  /** Its place is free when the resolver has ended, too, which may be after the time is up. */
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
   * One for each look-up: it shortens its times by how fast others were answered, below what a far name needs, and lets all that is under way fail with
   * one answer that cannot be read (seen with c-ares 1.34).
   */
  #newResolver(): Resolver {
    const resolver = new Resolver({ timeout: this.#timeoutMs, tries: LOOKUP_TRIES });
    if (this.#servers.length > 0) resolver.setServers(this.#servers);
    return resolver;
  }
}

const answerOf = (values: readonly string[]): DnsAnswer =>
  values.length === 0 ? ABSENT : { kind: 'found', values: values.slice(0, ANSWER_RECORDS_MAX) };
