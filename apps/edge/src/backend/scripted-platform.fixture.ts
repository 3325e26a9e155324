// The platform’s side of the edge link in memory: a small implementation, strict about record numbers, which tests can make unreachable.
// Used by tests only.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import {
  type AccountRights,
  type EdgeChange,
  type Heartbeat,
  heartbeat,
  type JournalRecord,
  keyQuestion,
  nameQuestion,
  type RecordBatch,
  type ReservedName,
  recordBatch,
  type TunnelQuestion,
  tunnelQuestion,
} from '@tunnel/contract';
import { sha256Hex } from '@tunnel/runtime';
import { ScriptedNames } from './names/scripted-names.fixture.ts';

export interface LoggedTunnel {
  readonly accountId: string;
  label: string;
  isOpen: boolean;
  requests: number;
  bytes: number;
}

interface ScriptedKey {
  readonly keyId: string;
  readonly accountId: string;
  isRevoked: boolean;
  unlimited: boolean;
}

type Change = EdgeChange extends infer T ? (T extends { id: number } ? Omit<T, 'id'> : never) : never;

export const CREDENTIAL = 'tne_credential-of-the-test';

export class ScriptedPlatform {
  readonly keys = new Map<string, ScriptedKey>();
  readonly accounts = new Map<string, AccountRights>();
  readonly tunnels = new Map<string, LoggedTunnel>();
  readonly journals = new Map<string, number>();
  readonly stored: JournalRecord[] = [];
  readonly heartbeats: Heartbeat[] = [];
  /** Fields about the platform’s pages in the response to a heartbeat. */
  pages: { readonly public_url?: string } = {};
  readonly batches: RecordBatch[] = [];
  /** Path of each received call, in order. */
  readonly calls: string[] = [];
  state: 'here' | 'away' | 'silent' = 'here';
  readonly names = new ScriptedNames();
  /** Accounts of verified domains, by domain. */
  readonly domains = new Map<string, string>();
  /** Behaves like an older platform without name ownership. */
  isOfBefore = false;
  /** Number of upcoming snapshots of names to cut off before their end. */
  cutSnapshots = 0;
  /** Number of upcoming responses to lose after the records were stored. */
  lostAnswers = 0;
  #changes: EdgeChange[] = [];
  readonly #caps = new Map<string, string>();
  readonly #lines = new Set<ReadableStreamDefaultController<Uint8Array>>();

  addKey(token: string, accountId: string, rights: Partial<AccountRights> = {}): void {
    const base = { account_id: accountId, plan: 'free', tunnel_limit: 100, allow_custom_subdomains: true };
    this.accounts.set(accountId, { ...base, ...this.accounts.get(accountId), ...rights });
    const key = { keyId: `key_${this.keys.size + 1}`, accountId, isRevoked: false, unlimited: false };
    this.keys.set(sha256Hex(token), key);
  }

  revokeKey(token: string): void {
    const key = this.keys.get(sha256Hex(token));
    if (key === undefined) throw new Error('no such key');
    key.isRevoked = true;
    this.announce({ kind: 'key-revoked', key_id: key.keyId, account_id: key.accountId });
  }

  setRights(accountId: string, rights: Partial<AccountRights>): void {
    const account = { ...(this.accounts.get(accountId) as AccountRights), ...rights };
    this.accounts.set(accountId, account);
    this.announce({ kind: 'account-changed', account });
  }

  /** Puts an account at its spend cap: its keys stay valid, but it opens no tunnels. A null cap lets the account open tunnels again. */
  setCap(accountId: string, cap: string | null): void {
    if (cap === null) {
      this.#caps.delete(accountId);
      this.setRights(accountId, {});
      return;
    }
    const message = `spend cap of ${cap} reached`;
    this.#caps.set(accountId, message);
    this.announce({ kind: 'account-closed', account_id: accountId, code: 'SPEND_CAP_REACHED', message });
  }

  get openLines(): number {
    return this.#lines.size;
  }

  /** Records a change and sends it to every open change stream. Without an open stream, an edge gets the change on its next stream. */
  announce(change: Change): void {
    const numbered = { ...change, id: this.#changes.length + 1 } as EdgeChange;
    this.#changes.push(numbered);
    for (const line of this.#lines) line.enqueue(lineOf(numbered));
  }

  cutLines(): void {
    for (const line of this.#lines) line.close();
    this.#lines.clear();
  }

  /** Sends a change unmodified to every open change stream, without recording the change. */
  say(change: EdgeChange): void {
    for (const line of this.#lines) line.enqueue(lineOf(change));
  }

  goAway(state: 'away' | 'silent' = 'away'): void {
    this.state = state;
    this.cutLines();
  }

  readonly fetch = async (request: Request): Promise<Response> => {
    if (this.state === 'away') throw new TypeError('fetch failed');
    if (this.state === 'silent') return new Promise(() => {});
    const { pathname, searchParams } = new URL(request.url);
    const call = pathname.replace('/internal/edge', '');
    this.calls.push(call);
    if (request.headers.get('authorization') !== `Bearer ${CREDENTIAL}`) return new Response('{}', { status: 401 });
    if (call === '/changes') return this.#openLine(Number(searchParams.get('since')));
    if (call === '/names' && !this.isOfBefore) return this.#snapshot(searchParams.get('domains') === '1');
    return this.#answer(call, await request.json());
  };

  async #answer(call: string, body: unknown): Promise<Response> {
    switch (call) {
      case '/heartbeat':
        this.heartbeats.push(heartbeat.parse(body));
        return Response.json({ edge_id: 'edge_1', last_change: this.#changes.length, ...this.pages });
      case '/keys/verify':
        return this.#verify(keyQuestion.parse(body).token_hash);
      case '/tunnels':
        return this.#open(tunnelQuestion.parse(body));
      case '/names/check': {
        if (this.isOfBefore) return new Response('{}', { status: 404 });
        const { kind, label, group_key_hash } = nameQuestion.parse(body);
        return Response.json({ free: this.names.isFree(kind, label, group_key_hash) });
      }
      case '/records':
        return this.#store(recordBatch.parse(body));
      default:
        return new Response('{}', { status: 404 });
    }
  }

  #verify(hash: string): Response {
    const key = this.keys.get(hash);
    if (key === undefined) return refuse('AUTH_TOKEN_INVALID', 'invalid API key');
    if (key.isRevoked) return refuse('AUTH_TOKEN_REVOKED', 'this API key was revoked');
    const account = this.accounts.get(key.accountId);
    const profile = { email: `${key.accountId}@example.com`, dashboard_url: 'https://platform.example/app' };
    return Response.json({ ok: true, key_id: key.keyId, unlimited: key.unlimited, account, profile });
  }

  #open({ tunnel_id, account_id, endpoint, domain }: TunnelQuestion): Response {
    const cap = this.#caps.get(account_id);
    if (cap !== undefined) return refuse('SPEND_CAP_REACHED', cap);
    const limit = this.accounts.get(account_id)?.tunnel_limit ?? null;
    const open = [...this.tunnels.values()].filter(({ accountId, isOpen }) => isOpen && accountId === account_id);
    if (limit !== null && open.length >= limit) return refuse('TUNNEL_PLAN_LIMIT', `tunnel limit of ${limit} reached`);
    if (domain !== undefined && !this.isOfBefore && this.domains.get(domain) !== account_id) {
      return refuse('TUNNEL_DOMAIN_UNVERIFIED', `domain '${domain}' is not verified for this account`);
    }
    const refused = endpoint === undefined || this.isOfBefore ? null : this.names.open(tunnel_id, account_id, endpoint);
    if (refused === 'group-key') return refuse('GROUP_KEY_MISMATCH', 'group key does not match');
    if (refused !== null && endpoint?.kind === 'subdomain') {
      return refuse('TUNNEL_SUBDOMAIN_IN_USE', `subdomain '${endpoint.label}' is already in use`);
    }
    if (refused !== null && endpoint?.kind === 'p2p') {
      return refuse('TUNNEL_P2P_NAME_IN_USE', `p2p name '${endpoint.label}' is already in use`);
    }
    if (refused !== null) return refuse('TUNNEL_PORT_IN_USE', `port ${endpoint?.label} is already in use`);
    this.tunnels.set(tunnel_id, { accountId: account_id, label: '', isOpen: true, requests: 0, bytes: 0 });
    return Response.json({ ok: true });
  }

  #store(batch: RecordBatch): Response {
    this.batches.push(batch);
    const last = this.journals.get(batch.journal_id) ?? 0;
    if (batch.first > last + 1) return Response.json({ error: 'gap', last_record: last }, { status: 409 });
    const unseen = batch.records.slice(last + 1 - batch.first);
    for (const record of unseen) this.#apply(record);
    const now = last + unseen.length;
    this.journals.set(batch.journal_id, now);
    if (this.lostAnswers > 0) {
      this.lostAnswers -= 1;
      throw new TypeError('fetch failed');
    }
    return Response.json({ last_record: now });
  }

  #apply(record: JournalRecord): void {
    this.stored.push(record);
    // The tunnel was opened while the platform was unreachable, so its name is claimed now.
    if (record.kind === 'opened' && record.endpoint !== undefined && !this.names.knows(record.tunnel_id)) {
      this.names.open(record.tunnel_id, record.account_id, {
        ...record.endpoint,
        label: record.endpoint.label ?? record.label,
      });
    }
    if (record.kind === 'closed') this.names.ended(record.tunnel_id, record.abandoned);
    const tunnel = this.tunnels.get(record.tunnel_id);
    if (record.kind === 'opened') {
      const fresh = { accountId: record.account_id, label: '', isOpen: true, requests: 0, bytes: 0 };
      this.tunnels.set(record.tunnel_id, { ...(tunnel ?? fresh), label: record.label });
    } else if (tunnel === undefined) return;
    else if (record.kind === 'usage') {
      tunnel.requests += record.requests;
      tunnel.bytes += record.bytes;
    } else if (record.abandoned) this.tunnels.delete(record.tunnel_id);
    else tunnel.isOpen = false;
  }

  /** Reserves a name and announces the change. */
  reserve(accountId: string, kind: ReservedName['kind'], label: string): void {
    this.names.reserve(accountId, kind, label);
    this.announce({ kind: 'name-changed', name: { kind, label, account_id: accountId, group_key_hash: null } });
  }

  release(accountId: string, kind: ReservedName['kind'], label: string): void {
    this.names.release(accountId, kind, label);
    this.announce({ kind: 'name-changed', name: { kind, label, account_id: null, group_key_hash: null } });
  }

  /** Verifies a domain for an account. A null account removes the domain; with `keepsTunnels` the domain lapses instead. */
  verify(domain: string, accountId: string | null, keepsTunnels = false): void {
    if (accountId === null) this.domains.delete(domain);
    else this.domains.set(domain, accountId);
    this.announce({ kind: 'domain-changed', domain, account_id: accountId, keeps_tunnels: keepsTunnels });
  }

  #snapshot(withDomains: boolean): Response {
    const isCut = this.cutSnapshots > 0;
    if (isCut) this.cutSnapshots -= 1;
    const domains = withDomains ? [...this.domains].map(([domain, account_id]) => ({ domain, account_id })) : [];
    const lines = [
      { at: this.#changes.length },
      ...this.names.reserved(),
      ...domains,
      ...(isCut ? [] : [{ end: true }]),
    ];
    return new Response(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  }

  #openLine(since: number): Response {
    let own: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        own = controller;
        this.#lines.add(controller);
        controller.enqueue(lineOf({ kind: 'alive', id: this.#changes.length }));
        for (const change of this.#changes.slice(since)) controller.enqueue(lineOf(change));
      },
      cancel: () => void this.#lines.delete(own),
    });
    return new Response(body);
  }
}

const lineOf = (change: EdgeChange): Uint8Array => new TextEncoder().encode(`${JSON.stringify(change)}\n`);

const refuse = (code: string, message: string): Response => Response.json({ ok: false, code, message });

/** Serves a scripted platform on a real socket. */
export const servePlatform = async (
  platform: ScriptedPlatform,
): Promise<{ readonly url: string; close(): Promise<void> }> => {
  const listener = getRequestListener((request) => platform.fetch(request), {
    errorHandler: () => new Response('{}', { status: 503 }),
  });
  const server = createServer((request, response) => void listener(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        platform.cutLines();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
