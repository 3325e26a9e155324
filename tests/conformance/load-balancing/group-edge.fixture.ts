// An edge with load balancing on or off and the tenants alice and bob, with access to the groups in its REST API and metrics.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { GroupSummary, HealthEvent } from '@tunnel/contract';
import type { Harness } from '../../system/harness.fixture.ts';
import type { Stack, StackOptions, TunnelRow } from '../../system/stack.fixture.ts';
import { EventFeed } from './event-feed.fixture.ts';

export { Harness } from '../../system/in-process.fixture.ts';

/** API keys of the tenants. Alice has two keys, because the account owns a group, not the key. */
const KEYS = { alice: 'key-of-alice', 'alice-2': 'other-key-of-alice', bob: 'key-of-bob' } as const;
export type Who = 'admin' | keyof typeof KEYS;

export const REGION = 'conformance';

/** Maximum wait for slow conditions. The value can be generous, because a test that waits in vain fails in any case. */
export const PATIENCE_MS = 60_000;

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

let made = 0;
/** Returns a group name that no other test of the file uses. The name is also a valid subdomain. */
export const fresh = (stem = 'pool'): string => {
  made += 1;
  return `${stem}-${made}`;
};

export interface EdgeOptions extends Pick<StackOptions, 'tcpPorts' | 'server' | 'tls'> {
  /** Whether load balancing is enabled; true by default. With null the key is left out of the configuration. */
  readonly enabled?: boolean | null;
  /** Additional lines of the [load_balancing] table. */
  readonly lines?: string;
}

export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export class GroupEdge {
  readonly stack: Stack;

  constructor(stack: Stack) {
    this.stack = stack;
  }

  static async start(
    harness: Harness,
    { enabled = true, lines = '', ...options }: EdgeOptions = {},
  ): Promise<GroupEdge> {
    const keys = Object.entries(KEYS).map(
      ([who, key]) => `[[auth.keys]]\naccount = "${who.replace('-2', '')}"\nsha256 = "${sha256(key)}"`,
    );
    const flag = enabled === null ? '' : `enabled = ${enabled}`;
    const tables = [`[region]\nid = "${REGION}"`, ...keys, '[load_balancing]', flag, lines].join('\n');
    return new GroupEdge(await harness.stack({ ...options, tables }));
  }

  get server(): string {
    return this.stack.control;
  }

  token(who: Who): string {
    return who === 'admin' ? readFileSync(this.stack.tokenFile, 'utf8').trim() : KEYS[who];
  }

  get(path: string, who: Who = 'admin'): Promise<Response> {
    return this.stack.api(path, { token: this.token(who) });
  }

  async json<T>(path: string, who: Who = 'admin'): Promise<T> {
    const answer = await this.get(path, who);
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  }

  groups(who: Who = 'admin'): Promise<GroupSummary[]> {
    return this.json('/api/groups', who);
  }

  async findGroup(name: string, who: Who = 'admin'): Promise<GroupSummary | undefined> {
    return (await this.groups(who)).find((group) => group.name === name);
  }

  async group(name: string, who: Who = 'admin'): Promise<GroupSummary> {
    const found = await this.findGroup(name, who);
    if (found === undefined) throw new Error(`no group ${name} for ${who}`);
    return found;
  }

  async tunnel(tunnelId: string): Promise<TunnelRow & { readonly group: string | null; readonly healthy: boolean }> {
    return this.json(`/api/tunnels/${tunnelId}`);
  }

  healthEvents(tunnelId: string, who: Who = 'admin'): Promise<HealthEvent[]> {
    return this.json(`/api/tunnels/${tunnelId}/health-events`, who);
  }

  feed(harness: Harness, protocol: string, label: string, who: Who = 'admin'): Promise<EventFeed> {
    return EventFeed.open(harness, `${this.stack.run.api_url}/api/groups/${protocol}/${label}/events`, this.token(who));
  }

  metricsText(): Promise<string> {
    return fetch(this.stack.run.metrics_url).then((answer) => answer.text());
  }

  /** Returns all series of the metric. */
  async series(name: string): Promise<Series[]> {
    const lines = (await this.metricsText()).matchAll(new RegExp(`^${name}(?:\\{(.*)\\})? (\\S+)$`, 'gm'));
    return [...lines].map(([, labels = '', value]) => ({
      labels: Object.fromEntries([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, text]) => [key, text])),
      value: Number(value),
    }));
  }

  /** Returns the value of the series that has at least the given labels. Returns undefined if there is no such series. */
  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number | undefined> {
    const fits = (series: Series): boolean =>
      Object.entries(labels).every(([key, text]) => series.labels[key] === text);
    return (await this.series(name)).find(fits)?.value;
  }
}
