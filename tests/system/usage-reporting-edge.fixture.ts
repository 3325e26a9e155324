// An edge without traffic, which has a credential and reports usage of its tunnels to the platform over the edge link. Like every edge,
// it repeats records that were not accepted, with the same numbers.
import { EDGE_LINK_PATH, type JournalRecord, type TunnelAnswer } from '@tunnel/contract';
import { randomId } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { serverCommand } from './server-command.fixture.ts';
import type { Stack } from './stack.fixture.ts';

/** Time limit of a report in milliseconds, long enough for a killed platform to return. */
const PATIENCE_MS = 60_000;
const BEAT_MS = 5000;

/** Account as known to an edge. */
export interface EdgeAccount {
  readonly accountId: string;
  readonly keyId: string;
}

export class UsageReportingEdge {
  readonly #platform: Pick<Stack, 'run'>;
  readonly #credential: string;
  /** URL for calls of the platform to the edge. Empty if the edge cannot be called. */
  readonly #apiUrl: string;
  readonly #runId = randomId('run');
  readonly #journalId = randomId('jrn');
  /** Number of the last stored record. Each batch continues the numbers of the previous batch. */
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

  /** Sends heartbeats. The platform considers a silent edge dead and closes its tunnels. */
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

  /** Requests a new tunnel, and returns the decision of the platform. */
  open({ accountId, keyId }: EdgeAccount, tunnel_id = randomId('tun')): Promise<TunnelAnswer> {
    const names = { run_id: this.#runId, session_id: 'ses_1', name: 'told', protocol: 'tcp', custom_subdomain: false };
    const owner = { account_id: accountId, key_id: keyId };
    return this.#ask<TunnelAnswer>('tunnels', { ...names, ...owner, tunnel_id, at: Date.now() });
  }

  /**
   * Reports a tunnel that was opened without a request, carried the given bytes, and was closed. Resolves when the platform has stored
   * the records.
   */
  async tell(account: EdgeAccount, bytes: number): Promise<void> {
    const tunnel_id = randomId('tun');
    const at = Date.now();
    await this.#store([
      this.#opened(account, tunnel_id, 'tcp', at),
      { kind: 'usage', tunnel_id, requests: 1, bytes, at },
      { kind: 'closed', tunnel_id, at, abandoned: false },
    ]);
  }

  /** Reports an open HTTP tunnel of the account, and returns its id. */
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
