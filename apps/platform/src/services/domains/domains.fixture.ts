// Own domains over a test database, with a scripted DNS. For tests only.
import {
  cnameTarget,
  type DnsAnswer,
  type DomainName,
  extractTokens,
  type ProofAnswers,
} from '@tunnel/certificates/domains';
import { loadServerConfig } from '@tunnel/config/server';
import { type Logger, Secret } from '@tunnel/runtime';
import type { FakeClock } from '@tunnel/testkit';
import type { Db } from '../../db/database.ts';
import { MasterKey } from '../../db/master-key.ts';
import type { DomainNews } from './change-domain.ts';
import type { DomainCheck } from './check-dns-records.ts';
import type { DomainDns } from './domain-dns.ts';
import type { DomainSettings } from './domain-settings.ts';
import { DomainVerifier } from './domain-verifier.ts';
import type { DomainsContext } from './own-domains.ts';

export const SERVER_DOMAIN = 'tunnels.test';

export const SETTINGS: DomainSettings = {
  serverDomain: SERVER_DOMAIN,
  operatorsHosts: [SERVER_DOMAIN, 'console.test'],
  resolvers: [],
  isLocal: false,
  hasCertificates: false,
  hasWildcardCertificates: false,
  publicUrl: 'https://console.test',
};

const ABSENT: DnsAnswer = { kind: 'absent' };
const NOTHING: ProofAnswers = { chain: ABSENT, texts: ABSENT, addresses: ABSENT, challenge: ABSENT };

export const found = (...values: string[]): DnsAnswer => ({ kind: 'found', values });
export const NO_ANSWER: DnsAnswer = { kind: 'no-answer', reason: 'ESERVFAIL' };

export class ScriptedDns implements DomainDns {
  /** Names of the checks so far, in order. */
  readonly asked: string[] = [];
  /** DNS records by name. Names without an entry have no records. */
  readonly #answers = new Map<string, Partial<ProofAnswers>>();
  /** Names with a held check, and the promise to wait for. */
  readonly #held = new Map<string, Promise<void>>();
  isClosed = false;

  set(name: string, answers: Partial<ProofAnswers>): void {
    this.#answers.set(name, answers);
  }

  /** Points the name to an account's token with a CNAME record. */
  point(name: string, token: string): void {
    this.set(name, { chain: found(cnameTarget(token, SERVER_DOMAIN)) });
  }

  fail(name: string): void {
    this.set(name, { chain: NO_ANSWER, texts: NO_ANSWER, addresses: NO_ANSWER, challenge: NO_ANSWER });
  }

  /** Holds the next check of the name: the check reads the records at its start, and returns the result after the release. */
  hold(name: string): () => void {
    let release = (): void => {};
    this.#held.set(
      name,
      new Promise((resolve) => {
        release = resolve;
      }),
    );
    return () => release();
  }

  async check({ name }: DomainName): Promise<DomainCheck> {
    this.asked.push(name);
    const answers = { ...NOTHING, ...this.#answers.get(name) };
    const held = this.#held.get(name);
    this.#held.delete(name);
    await held;
    const problem = answers.chain.kind === 'no-answer' ? answers.chain.reason : null;
    return {
      answers,
      findings: extractTokens(answers, SERVER_DOMAIN),
      isApex: problem === null ? false : null,
      problem,
    };
  }

  async addresses(): Promise<DnsAnswer> {
    return found('192.0.2.1');
  }

  close(): void {
    this.isClosed = true;
  }
}

export interface DomainsFixture extends DomainsContext {
  readonly dns: ScriptedDns;
  readonly verifier: DomainVerifier;
  readonly news: DomainNews[];
}

const MASTER_KEY = new MasterKey('master-key', new Secret('m'.repeat(43)));

/** Creates the domain services of one process. Several processes may share a database and a DNS. */
export const createDomains = (
  { db, clock, logger }: { readonly db: Db; readonly clock: FakeClock; readonly logger: Logger },
  settings: Partial<DomainSettings> = {},
  dns = new ScriptedDns(),
): DomainsFixture => {
  const domains = { ...SETTINGS, ...settings };
  const news: DomainNews[] = [];
  const onDomainNews = (told: DomainNews): void => void news.push(told);
  const verifier = new DomainVerifier({
    db,
    clock,
    logger,
    settings: domains,
    onNews: onDomainNews,
    openDns: async () => dns,
  });
  const { platform } = loadServerConfig({ env: {} });
  const own = { verifier, dns, news };
  return {
    db,
    clock,
    settings: platform,
    domains,
    domainVerifier: verifier,
    ...own,
    onDomainNews,
    masterKey: () => MASTER_KEY,
  };
};
