// Tunnels of test accounts: a local service, a real client with the account's key, and visitors.
import { type Client, connect, type StatusEvent, type Tunnel, type TunnelOptions } from '@tunnel/client';
import type { TunnelLogEntry } from '@tunnel/contract';
import { randomId } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { type Answering, askHttp, endpointOf, startWeb } from '../../system/http-tunnels.fixture.ts';
import { PATIENCE_MS, type Person, type PlatformHarness } from './platform-harness.fixture.ts';

export interface OpenClient {
  readonly client: Client;
  readonly statuses: StatusEvent[];
}

export const connectWith = async (harness: PlatformHarness, token: string): Promise<OpenClient> => {
  const statuses: StatusEvent[] = [];
  const onStatus = (event: StatusEvent): void => void statuses.push(event);
  const client = await connect({ server: harness.server.control, token, onStatus });
  harness.use({ close: () => client.close() });
  return { client, statuses };
};

/** Returns the error message for a tunnel that the client requests, or 'open' if the tunnel opens. */
export const fateOf = (client: Client, spec: TunnelOptions): Promise<string> =>
  client.open(spec).then(
    () => 'open',
    (fault: { code: string; message: string }) => `${fault.code}: ${fault.message}`,
  );

/** Starts a service that answers every request in the same way. */
export const startService = async (
  harness: PlatformHarness,
  answer: Answering = (_, response) => void response.end('hello'),
): Promise<number> => harness.use(await startWeb(answer)).port;

export const openTunnel = async (
  harness: PlatformHarness,
  person: Pick<Person, 'token'>,
  spec: Partial<TunnelOptions> = {},
): Promise<{ client: Client; tunnel: Tunnel; statuses: StatusEvent[]; key: { id: string; token: string } }> => {
  const key = await harness.newKey(person);
  const open = await connectWith(harness, key.token);
  const localPort = spec.localPort ?? (await startService(harness));
  return { ...open, key, tunnel: await open.client.open({ protocol: 'http', ...spec, localPort }) };
};

export const visitHttp = async ({ publicUrl }: Pick<Tunnel, 'publicUrl'>, path = '/'): Promise<number> =>
  (await askHttp(endpointOf(publicUrl), { path })).status;

/** Returns the log entry of a tunnel as soon as it satisfies the condition. */
export const entryWhen = (
  harness: PlatformHarness,
  { token }: Pick<Person, 'token'>,
  tunnelId: string,
  isSo: (entry: TunnelLogEntry) => boolean = () => true,
): Promise<TunnelLogEntry> =>
  eventually(
    async () => {
      const { status, body, text } = await harness.get(`/usage/tunnels/${tunnelId}`, token);
      if (status !== 200 || !isSo(body as TunnelLogEntry)) throw new Error(`${status} ${text}`);
      return body as TunnelLogEntry;
    },
    { timeoutMs: PATIENCE_MS },
  );

interface LostTunnel {
  readonly protocol?: string;
  readonly region?: string;
  /** End of the tunnel; null if no end was reported. */
  readonly endedAt?: Date | null;
}

/** Adds a tunnel of an absent edge to an account's log, and returns its path. */
export const lostTunnel = async (
  { db }: PlatformHarness,
  { id: user_id }: Pick<Person, 'id'>,
  { protocol = 'http', region = 'far-away', endedAt = null }: LostTunnel = {},
): Promise<string> => {
  const entry = { user_id, tunnel_id: randomId('tun'), protocol, label: 'web', region_id: region };
  const times = { registered_at: new Date(), unregistered_at: endedAt };
  await db
    .insertInto('tunnel_log')
    .values({ ...entry, ...times })
    .execute();
  return `/usage/tunnels/${entry.tunnel_id}`;
};
