// The zone `_acme-challenge.<domain>`: answers TXT, SOA and NS queries, and nothing outside the zone.

import { Fault } from '@tunnel/errors';
import type { Answer, Question } from 'dns-packet';
import { foldName } from '../../domains/domain-proof.rules.ts';

/** Maximum number of challenge records in the zone: four concurrent orders have a few each. */
const RECORDS_MAX = 1000;
/** TTL of answers in seconds. A value is queried right after it was set. */
const RECORD_TTL_SECS = 1;

export interface ZoneAnswer {
  readonly rcode: 'NOERROR' | 'REFUSED';
  readonly answers: readonly Answer[];
  readonly authorities: readonly Answer[];
}

const REFUSED: ZoneAnswer = { rcode: 'REFUSED', answers: [], authorities: [] };
const HOUR_SECS = 3600;

export class ChallengeZone {
  readonly origin: string;
  readonly #nameServer: string;
  readonly #values = new Map<string, Set<string>>();
  #records = 0;
  #serial: number;

  /** Creates the DNS zone for challenges. `serial` must grow between runs, such as a time in seconds. */
  constructor(domain: string, serial: number) {
    this.origin = `_acme-challenge.${foldName(domain)}`;
    this.#nameServer = foldName(domain);
    this.#serial = serial;
  }

  set(name: string, value: string): void {
    const folded = foldName(name);
    if (!this.#contains(folded)) throw new Fault('DNS_OUTSIDE_ZONE', { name: folded, zone: this.origin });
    const values = this.#values.get(folded) ?? new Set();
    if (values.has(value)) return;
    if (this.#records >= RECORDS_MAX) {
      throw new Fault('DNS_CHALLENGES_FULL', { limit: RECORDS_MAX });
    }
    this.#values.set(folded, values.add(value));
    this.#changed(1);
  }

  clear(name: string, value: string): void {
    const folded = foldName(name);
    const values = this.#values.get(folded);
    if (values?.delete(value) !== true) return;
    if (values.size === 0) this.#values.delete(folded);
    this.#changed(-1);
  }

  /** Answers a DNS question. Echoes the name in the queried case, because some resolvers compare it. */
  answer({ name, type, class: of = 'IN' }: Question): ZoneAnswer {
    const folded = foldName(name);
    if (of !== 'IN' || !this.#contains(folded)) return REFUSED;
    const answers = this.#answersOf(folded, name, type);
    // Never answers NXDOMAIN, because resolvers would then not query names below it for a while.
    return { rcode: 'NOERROR', answers, authorities: answers.length === 0 ? [this.#soa(this.origin)] : [] };
  }

  #answersOf(folded: string, name: string, type: string): Answer[] {
    const ttl = RECORD_TTL_SECS;
    if (type === 'TXT') {
      return [...(this.#values.get(folded) ?? [])].map((value) => ({ name, type, ttl, data: [value] }));
    }
    if (folded !== this.origin) return [];
    if (type === 'SOA') return [this.#soa(name)];
    return type === 'NS' ? [{ name, type, ttl, data: this.#nameServer }] : [];
  }

  #soa(name: string): Answer {
    const ttl = RECORD_TTL_SECS;
    const data = {
      mname: this.#nameServer,
      rname: `hostmaster.${this.#nameServer}`,
      serial: this.#serial,
      refresh: HOUR_SECS,
      retry: HOUR_SECS,
      expire: 24 * HOUR_SECS,
      // Time in seconds for which resolvers cache a negative answer.
      minimum: ttl,
    };
    return { name, type: 'SOA', ttl, data };
  }

  #contains(folded: string): boolean {
    return folded === this.origin || folded.endsWith(`.${this.origin}`);
  }

  #changed(records: number): void {
    this.#records += records;
    this.#serial = (this.#serial + 1) % 2 ** 32;
  }
}
