// An edge without traffic: it has a credential, and tells the platform over the edge link what its tunnels carried. As every
// edge does, it tells again what was not taken, with the same numbers.
import { EDGE_LINK_PATH, type JournalRecord, type TunnelAnswer } from '@tunnel/contract';
import { randomId } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { serverCommand } from './server-command.fixture.ts';
import type { Stack } from './stack.fixture.ts';

/** For a platform that was killed and comes back. */
const PATIENCE_MS = 60_000;
const BEAT_MS = 5000;

/** What an account is to an edge. */
export interface EdgeAccount {
  readonly accountId: string;
  readonly keyId: string;
}

export class UsageReportingEdge {
  readonly #platform: Pick<Stack, 'run'>;
  readonly #credential: string;
  /** Where the platform asks it; empty: nowhere. */
  readonly #apiUrl: string;
  readonly #runId = randomId('run');
  readonly #journalId = randomId('jrn');
  /** Records are numbered, and each batch goes on where the last one ended. */
  #told: Promise<number> = Promise.resolve(0);

  private constructor(platform: Pick<Stack, 'run'>, credential: string, apiUrl: string) {
    this.#platform = platform;
    this.#credential = credential;
    this.#apiUrl = apiUrl;
  }

  static async join(platform: Stack, apiUrl = ''): Promise<UsageReportingEdge> {
    const [credential = ''] = await serverCommand(platform, 'edge-credential', 'create', randomId('edge'));
    const edge = new UsageReportingEdge(platform, credential, apiUrl);
    await edge.#beat();
    return edge;
  }

  /** An edge that is not heard is taken for dead, and its tunnels are closed. */
  keepBeating(): { close(): Promise<void> } {
    const timer = setInterval(() => void this.#beat().catch(() => {}), BEAT_MS);
    return { close: async () => clearInterval(timer) };
  }

  #beat(): Promise<unknown> {
    return this.#ask('heartbeat', {
      run_id: this.#runId,
      region: { id: 'telling', name: 'telling', location: '' },
      api_url: this.#apiUrl,
      api_secret: 'nobody-asks-this-edge',
      version: '0.0.0',
      open_tunnels: 0,
    });
  }

  /** What the platform says to a tunnel that wants to open. */
  open({ accountId, keyId }: EdgeAccount, tunnel_id = randomId('tun')): Promise<TunnelAnswer> {
    const names = { run_id: this.#runId, session_id: 'ses_1', name: 'told', protocol: 'tcp', custom_subdomain: false };
    const owner = { account_id: accountId, key_id: keyId };
    return this.#ask<TunnelAnswer>('tunnels', { ...names, ...owner, tunnel_id, at: Date.now() });
  }

  /** A tunnel that was opened without asking, carried so much, and is closed. It is stored when this returns. */
  async tell(account: EdgeAccount, bytes: number): Promise<void> {
    const tunnel_id = randomId('tun');
    const at = Date.now();
    await this.#store([
      this.#opened(account, tunnel_id, 'tcp', at),
      { kind: 'usage', tunnel_id, requests: 1, bytes, at },
      { kind: 'closed', tunnel_id, at, abandoned: false },
    ]);
  }

  /** An http tunnel of the account that lives. */
  async tellOfLiving(account: EdgeAccount): Promise<string> {
    const tunnelId = randomId('tun');
    await this.#store([this.#opened(account, tunnelId, 'http', Date.now())]);
    return tunnelId;
  }

  #opened({ accountId, keyId }: EdgeAccount, tunnel_id: string, protocol: 'tcp' | 'http', at: number): JournalRecord {
    const names = { run_id: this.#runId, session_id: 'ses_1', name: 'told', protocol, label: '' } as const;
    return { kind: 'opened', ...names, tunnel_id, account_id: accountId, key_id: keyId, at };
  }

  async #store(records: readonly JournalRecord[]): Promise<void> {
    this.#told = this.#told.then(async (last) => {
      const batch = { run_id: this.#runId, journal_id: this.#journalId, first: last + 1, records };
      const stored = await eventually(() => this.#ask<{ last_record: number }>('records', batch), {
        timeoutMs: PATIENCE_MS,
      });
      return stored.last_record;
    });
    await this.#told;
  }

  async #ask<T>(path: string, body: unknown): Promise<T> {
    const response = await fetch(`${this.#platform.run.platform_url}${EDGE_LINK_PATH}/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.#credential}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }
}
