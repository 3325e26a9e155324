// Certificate store in a folder, for a single server: one file per certificate, replaced atomically, readable only by its owner. The folder
// belongs to one process (its data directory is locked), so memory and disk are equal; leases end with the process.

import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Fault } from '@tunnel/errors';
import { ASIDE, sha256Hex, writeAtomicSync } from '@tunnel/runtime';
import {
  type BudgetEntry,
  type CertificateLife,
  certificateDueAt,
  NEW_CERTIFICATE,
  type OrderBudgetRules,
  takeFromBudget,
  transitionCertificate,
} from '../../life/certificate-life.rules.ts';
import { CERTIFICATES_LIMITS } from '../../limits.ts';
import type { ChallengeAnswer } from '../client/challenge-answers.ts';
import type {
  BudgetTaken,
  CertificateRecord,
  CertificateStore,
  ChallengeKey,
  Claim,
  ClaimRules,
  RecordChanges,
  StoredAccount,
} from './certificate-store.ts';

interface Entry {
  record: CertificateRecord;
  epoch: number;
  leasedUntil: number;
}

const ID_CHARS = 24;
const RECORD_FILE = /^certificate-[\da-f]+\.json$/;

export class FileCertificateStore implements CertificateStore {
  readonly #dir: string;
  readonly #entries = new Map<string, Entry>();
  readonly #challenges = new Map<string, { readonly answer: ChallengeAnswer; readonly until: number }>();
  #account: StoredAccount | null;
  #budgets: Record<string, readonly BudgetEntry[]>;

  /** Opens the certificate store in a folder. Throws if the folder cannot be used or contains an invalid file. */
  constructor(dir: string, directoryUrl: string) {
    this.#dir = join(dir, sha256Hex(directoryUrl).slice(0, ID_CHARS));
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    // Sets the folder's permissions, because an existing folder may have others.
    chmodSync(this.#dir, 0o700);
    for (const file of readdirSync(this.#dir)) {
      if (file.endsWith(ASIDE)) rmSync(join(this.#dir, file), { force: true });
      if (!RECORD_FILE.test(file)) continue;
      // Certificate files of older versions have no account.
      const record = { accountId: null, ...(this.#read(file) as Omit<CertificateRecord, 'accountId'>) };
      this.#entries.set(record.id, { record, epoch: 0, leasedUntil: 0 });
    }
    this.#account = this.#read('account.json') as StoredAccount | null;
    this.#budgets = (this.#read('budgets.json') ?? {}) as Record<string, readonly BudgetEntry[]>;
  }

  async want(names: readonly string[], accountId: string | null = null): Promise<CertificateRecord> {
    const id = sha256Hex([...names].sort().join(',')).slice(0, ID_CHARS);
    const known = this.#entries.get(id);
    if (known?.record.accountId === accountId) return known.record;
    const fresh = { id, names: [...names], life: NEW_CERTIFICATE, orderKey: null, certificate: null };
    const record = { ...fresh, ...known?.record, accountId };
    this.#write(fileOf(id), record);
    if (known === undefined) this.#entries.set(id, { record, epoch: 0, leasedUntil: 0 });
    else known.record = record;
    return record;
  }

  async forget(id: string): Promise<void> {
    this.#entries.delete(id);
    rmSync(join(this.#dir, fileOf(id)), { force: true });
  }

  async list(): Promise<readonly CertificateRecord[]> {
    return [...this.#entries.values()].map(({ record }) => record);
  }

  async get(id: string): Promise<CertificateRecord | null> {
    return this.#entries.get(id)?.record ?? null;
  }

  async claim(_owner: string, now: number, leaseMs: number, takes?: ClaimRules): Promise<Claim | null> {
    const dueAt = ({ record }: Entry): number => certificateDueAt(record.life);
    const isTaken = ({ names }: CertificateRecord): boolean =>
      takes?.wildcards !== false || !names.some((name) => name.startsWith('*.'));
    const busyOf = ({ record }: Entry): number =>
      takes?.busyAccounts?.filter((account) => account === record.accountId).length ?? 0;
    const due = [...this.#entries.values()].filter(
      (entry) =>
        entry.leasedUntil <= now &&
        dueAt(entry) <= now &&
        isTaken(entry.record) &&
        busyOf(entry) < CERTIFICATES_LIMITS.CERTIFICATE_ORDERS_AT_ONCE_PER_ACCOUNT,
    );
    const [first] = due.sort((a, b) => busyOf(a) - busyOf(b) || dueAt(a) - dueAt(b));
    if (first === undefined) return null;
    first.epoch += 1;
    first.leasedUntil = now + leaseMs;
    return { record: first.record, epoch: first.epoch };
  }

  async extend(claim: Claim, now: number, leaseMs: number): Promise<boolean> {
    const entry = this.#held(claim);
    if (entry === null) return false;
    entry.leasedUntil = now + leaseMs;
    return true;
  }

  async save(claim: Claim, changes: RecordChanges): Promise<boolean> {
    const entry = this.#held(claim);
    if (entry === null) return false;
    const record = { ...entry.record, ...changes };
    // Written to disk first, so that after a full disk both memory and file have the old state.
    this.#write(fileOf(record.id), record);
    entry.record = record;
    return true;
  }

  async release(claim: Claim): Promise<void> {
    const entry = this.#held(claim);
    if (entry !== null) entry.leasedUntil = 0;
  }

  async change(id: string, now: number, change: (life: CertificateLife) => CertificateLife): Promise<boolean> {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.leasedUntil > now) return false;
    const record = { ...entry.record, life: change(entry.record.life) };
    this.#write(fileOf(id), record);
    entry.record = record;
    return true;
  }

  async wantInfo(now: number, everyMs: number): Promise<void> {
    const issued = [...this.#entries.values()].filter(
      ({ record, leasedUntil }) => record.life.issued !== null && leasedUntil <= now,
    );
    // The scheduled request for renewal information is not saved, because every start schedules it again.
    issued.forEach((entry, index) => {
      const event = { kind: 'info-wanted', at: now + index * everyMs } as const;
      const [life] = transitionCertificate(entry.record.life, event, now, 0);
      entry.record = { ...entry.record, life };
    });
  }

  async account(): Promise<StoredAccount | null> {
    return this.#account;
  }

  async saveAccount(account: StoredAccount, insteadOf: string | null): Promise<StoredAccount> {
    if ((this.#account?.key ?? null) !== insteadOf && this.#account !== null) return this.#account;
    this.#write('account.json', account);
    this.#account = account;
    return account;
  }

  async takeFromBudget(
    name: string,
    rules: OrderBudgetRules,
    now: number,
    account: string | null,
  ): Promise<BudgetTaken> {
    const answer = takeFromBudget(this.#budgets[name] ?? [], rules, now, account);
    if (answer.kind === 'empty') return answer;
    if (account === null) return { kind: 'taken' };
    const budgets = { ...this.#budgets, [name]: answer.entries };
    this.#write('budgets.json', budgets);
    this.#budgets = budgets;
    return { kind: 'taken' };
  }

  async setChallenge(answer: ChallengeAnswer, until: number): Promise<void> {
    this.#challenges.set(challengeKey(answer), { answer, until });
  }

  async clearChallenge(answer: ChallengeAnswer): Promise<void> {
    // Clears only this response, because a later order may have set another challenge under the same key.
    const key = challengeKey(answer);
    if (this.#challenges.get(key)?.answer.token === answer.token) this.#challenges.delete(key);
  }

  async findChallenge(key: ChallengeKey, now: number): Promise<ChallengeAnswer | null> {
    const isWaitedFor = ({ until }: { readonly until: number }): boolean => until > now;
    if ('name' in key) {
      // A search without index is fast enough: there are only as many challenges as open orders.
      const ofName = [...this.#challenges.values()].filter(({ answer }) => answer.name === key.name);
      return ofName.findLast(isWaitedFor)?.answer ?? null;
    }
    const found = this.#challenges.get('token' in key ? `token ${key.token}` : `tls ${key.tlsName}`);
    return found !== undefined && isWaitedFor(found) ? found.answer : null;
  }

  #held({ record, epoch }: Claim): Entry | null {
    const entry = this.#entries.get(record.id);
    return entry === undefined || entry.epoch !== epoch ? null : entry;
  }

  #read(file: string): unknown {
    const path = join(this.#dir, file);
    try {
      return JSON.parse(readFileSync(path, 'utf8'));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw new Error(`${path} cannot be read: ${(error as Error).message}`, { cause: error });
    }
  }

  #write(file: string, value: object): void {
    try {
      writeAtomicSync(join(this.#dir, file), JSON.stringify(value), { flush: true, soleWriter: true });
    } catch (error) {
      // A failed write is usually a full disk, which says nothing about the certificate and ends when space is free again.
      const reason = error instanceof Error ? error.message : String(error);
      throw new Fault('CERTIFICATE_STORE_AWAY', { reason }, { cause: error });
    }
  }
}

const fileOf = (id: string): string => `certificate-${id}.json`;

const challengeKey = ({ type, token, name }: ChallengeAnswer): string =>
  type === 'tls-alpn-01' ? `tls ${name}` : `token ${token}`;
