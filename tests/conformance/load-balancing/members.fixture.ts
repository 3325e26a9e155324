// Members of groups: a local service with a real client in front of it.
import { connect as connectTcp } from 'node:net';
import { type Client, connect, type StatusEvent, type Tunnel, type TunnelOptions } from '@tunnel/client';
import { eventually, startTcpServer, type TcpServer } from '@tunnel/testkit';
import type { Harness } from '../../system/harness.fixture.ts';
import { type Answering, askHttp, endpointOf, startWeb, type WebService } from '../../system/http-tunnels.fixture.ts';
import { endOf, readText, visit } from '../../system/visitor.fixture.ts';
import { fresh, type GroupEdge, PATIENCE_MS, type Who } from './group-edge.fixture.ts';

/** A local service that answers every request with its name. `/healthz` reports whether the service is up and counts probes. */
export interface NamedService extends WebService {
  readonly name: string;
  up: boolean;
  /** Arrival times of the probes on the harness's clock. */
  readonly probes: number[];
  served: number;
}

export const startNamed = async (
  harness: Harness,
  name = fresh('service'),
  answer: Answering = (_, response) => void response.end(name),
): Promise<NamedService> => {
  const state = { name, up: true, probes: [] as number[], served: 0 };
  const web = await startWeb((request, response) => {
    if (request.url === '/healthz') {
      state.probes.push(harness.clock.monotonic());
      response.writeHead(state.up ? 200 : 503).end();
      return;
    }
    state.served += 1;
    return answer(request, response);
  });
  return harness.use(Object.assign(state, web));
};

/** Starts a TCP service that sends its name and then echoes. */
export const startNamedTcp = async (harness: Harness, name: string, port = 0): Promise<TcpServer> =>
  harness.use(
    await startTcpServer(
      (socket) => {
        socket.write(name);
        socket.pipe(socket);
      },
      { port },
    ),
  );

/** A health check that runs often enough for a test, but not too often for two cores. */
export const OFTEN = { type: 'http', path: '/healthz', intervalSecs: 0.2, timeoutSecs: 15, maxFailed: 2 } as const;

export interface Member {
  readonly client: Client;
  readonly tunnel: Tunnel;
  readonly statuses: StatusEvent[];
}

/** Opens a tunnel with a separate client for each member, as on separate machines. */
export const join = async (
  harness: Harness,
  edge: GroupEdge,
  spec: Partial<TunnelOptions> & Pick<TunnelOptions, 'localPort'>,
  { who = 'alice', server = edge.server }: { readonly who?: Who; readonly server?: string } = {},
): Promise<Member> => {
  const statuses: StatusEvent[] = [];
  const onStatus = (event: StatusEvent): void => void statuses.push(event);
  const client = await connect({ server, token: edge.token(who), onStatus, clock: harness.clock });
  harness.use({ close: () => client.close() });
  const key = spec.group === undefined ? {} : { groupKey: 'key' };
  return { client, tunnel: await client.open({ protocol: 'http', ...key, ...spec }), statuses };
};

/** Waits until the group has the given number of healthy members. */
export const untilHealthy = (edge: GroupEdge, group: string, count: number): Promise<void> =>
  eventually(
    async () => {
      const { healthy_count } = await edge.group(group);
      if (healthy_count !== count) throw new Error(`${healthy_count} of ${count} are healthy`);
    },
    { timeoutMs: PATIENCE_MS },
  );

/** Visits a URL and returns the names of the answering services, one per connection. */
export const namesAt = async ({ publicUrl }: Pick<Tunnel, 'publicUrl'>, connections = 20): Promise<string[]> => {
  const endpoint = endpointOf(publicUrl);
  const names: string[] = [];
  for (let asked = 0; asked < connections; asked += 1) {
    const { status, text } = await askHttp(endpoint);
    names.push(status === 200 ? text : String(status));
  }
  return names;
};

export const distinct = <T extends string | number | null | undefined>(values: readonly T[]): T[] =>
  [...new Set(values)].sort((a, b) => ((a ?? 0) < (b ?? 0) ? -1 : 1));

/** Returns how a connection ends for a visitor who sends the text at once. */
export const endAfter = (port: number, words: string): Promise<string> => {
  const socket = connectTcp({ host: '127.0.0.1', port });
  socket.write(words);
  return endOf(socket);
};

/** Returns the first bytes that a visitor of a TCP port receives. */
export const greetingAt = async (port: number, bytes: number): Promise<string> => {
  const socket = await visit(port);
  const text = await readText(socket, bytes);
  socket.destroy();
  return text;
};
