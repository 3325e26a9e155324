// The agent's HTTP routes. A route is thin: it calls one method of RunningClient.
import type { ServerResponse } from 'node:http';
import { type Tunnel } from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import type { Clock, Logger } from '@tunnel/runtime';
import type { InspectorAnswer, LogEntry } from '../../agent/answers.ts';
import { readiness } from '../../agent/readiness.rules.ts';
import { specFromWire } from '../../agent/spec-wire.ts';
import { misuse } from '../../io/problem-report.ts';
import { CLI_LIMITS } from '../../limits.ts';
import { readyFields } from '../../output/json.ts';
import type { LogKeeper } from './log-keeper.ts';
import type { RunningClient } from './running-client.ts';
import { statusOf } from './status-report.ts';

/** Maximum connections that follow events or logs. The limit leaves room for other requests. */
export const AGENT_FOLLOWERS_MAX = 16;
/** Maximum bytes queued for one follower of events or logs. A follower that reads more slowly is disconnected. */
const AGENT_LAG_MAX_BYTES = 1024 * 1024;
/** Timeout for the edge's response to an added tunnel. Afterwards the tunnel is removed. */
const AGENT_ADD_TIMEOUT_MS = 30_000;

export interface AgentRoutes {
  readonly running: RunningClient;
  readonly log: LogKeeper;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly pid: number;
}

export interface AgentRequest {
  readonly method: string;
  readonly url: string;
  readonly body: string;
  /** HTTP response, for routes that stream events or logs. */
  readonly response: ServerResponse;
}

interface AgentAnswer {
  readonly status: number;
  readonly json: object;
}

/** Path and query of a request. Split by hand, because URL parsing would resolve a tunnel named `..` to another path. */
interface Asked {
  readonly path: string;
  readonly query: URLSearchParams;
}

type Route = (
  request: AgentRequest,
  asked: Asked,
  agent: AgentRoutes,
) => Promise<AgentAnswer | null> | AgentAnswer | null;

/** Runs the route of a request. Returns null if the route has sent the response. Throws a Fault on errors. */
export const answerTo = async (request: AgentRequest, agent: AgentRoutes): Promise<AgentAnswer | null> => {
  const [path = '', query = ''] = request.url.split('?', 2);
  const [, head = '', name] = path.split('/');
  const key = `/${head}${name === undefined ? '' : '/'}`;
  const methods = Object.hasOwn(ROUTES, key) ? ROUTES[key] : undefined;
  if (methods === undefined) throw new Fault('API_NOT_FOUND', { path });
  const route = Object.hasOwn(methods, request.method) ? methods[request.method] : undefined;
  if (route === undefined) throw new Fault('API_METHOD_NOT_ALLOWED', { method: request.method });
  return route(request, { path, query: new URLSearchParams(query) }, agent);
};

const ok = (json: object): AgentAnswer => ({ status: 200, json });

const ROUTES: Readonly<Record<string, Readonly<Record<string, Route>>>> = {
  '/status': { GET: (_request, _asked, { running, pid }) => ok(statusOf(running, pid)) },
  '/inspector': {
    GET: (_request, _asked, { running }) => ok({ inspect_url: running.inspectUrl } satisfies InspectorAnswer),
  },
  '/ready': {
    GET: (_request, _asked, { running }) => {
      const answer = readiness(running);
      return { status: answer.ready ? 200 : 503, json: answer };
    },
  },
  '/events': { GET: (request, _asked, agent) => followEvents(request, agent) },
  '/logs': { GET: (request, asked, agent) => sendLogs(request, asked, agent) },
  '/tunnels': { POST: (request, _asked, agent) => addTunnel(request, agent) },
  '/tunnels/': { DELETE: (_request, asked, agent) => removeTunnel(asked, agent) },
  '/reload': { POST: async (_request, _asked, { running }) => ok(await reload(running)) },
  '/stop': {
    POST: ({ response }, _asked, { running }) => {
      // The end of the run closes the socket, so the response is sent before the run is stopped.
      response.once('close', () => running.stop());
      return { status: 202, json: { stopping: true } };
    },
  },
};

const addTunnel = async ({ body, response }: AgentRequest, agent: AgentRoutes): Promise<AgentAnswer> => {
  const { running, clock } = agent;
  const spec = specFromWire(parseBody(body));
  const tunnel = await answeredInTime(running.open(spec, 'runtime'), response, agent).catch(async (error: unknown) => {
    if (error instanceof GivenUp) await running.remove(spec.name, 'removed');
    throw error instanceof GivenUp ? error.fault : error;
  });
  const at = new Date(clock.now()).toISOString();
  return ok({ event: 'ready', at, ...readyFields(tunnel, running.client?.session ?? null, running.inspectUrl) });
};

/**
 * The error of an added tunnel after a timeout or a disconnected caller. The tunnel must not open later, because no caller waits for the
 * tunnel.
 */
class GivenUp extends Error {
  readonly fault: Fault;

  constructor(fault: Fault) {
    super(fault.message);
    this.fault = fault;
  }
}

const answeredInTime = (
  opening: Promise<Tunnel>,
  response: ServerResponse,
  { running, clock }: AgentRoutes,
): Promise<Tunnel> =>
  new Promise((resolve, reject) => {
    const giveUp = (reason: string): void =>
      reject(new GivenUp(new Fault('CLIENT_SERVER_UNREACHABLE', { server: running.plan.settings.server, reason })));
    const timer = clock.setTimeout(
      () => giveUp(`no response within ${AGENT_ADD_TIMEOUT_MS / 1000} s`),
      AGENT_ADD_TIMEOUT_MS,
    );
    const onClose = (): void => giveUp('the caller disconnected');
    response.once('close', onClose);
    opening.then(resolve, reject).finally(() => {
      timer.cancel();
      response.off('close', onClose);
    });
  });

const parseBody = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    throw new Fault('API_BAD_REQUEST', { reason: 'the body is not JSON' });
  }
};

const removeTunnel = async ({ path }: Asked, { running }: AgentRoutes): Promise<AgentAnswer> => {
  const name = decoded(path.slice('/tunnels/'.length));
  const { tunnel = null } = running.tunnels.find((entry) => entry.name === name) ?? {};
  if (!(await running.remove(name, 'removed'))) {
    const names = running.tunnels.filter(({ state }) => state !== 'closing').map((entry) => entry.name);
    const known = names.length === 0 ? 'The client has no tunnels.' : `Available: ${names.join(', ')}.`;
    throw misuse(`no tunnel '${name}' in this client. ${known}`);
  }
  return ok({ name, tunnel_id: tunnel?.tunnelId || null, open_connections: tunnel?.counts.open ?? 0 });
};

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Fault('API_BAD_REQUEST', { reason: 'the name is not URL-encoded' });
  }
};

const reload = (running: RunningClient) => {
  if (running.reload !== null) return running.reload();
  throw misuse('this client has no config file. Only clients started with `tunnel start` can reload.');
};

const followEvents = (request: AgentRequest, agent: AgentRoutes): null => {
  const follower = follow(request, agent);
  follower.tell(({ event }) => event);
  return null;
};

/** Sends log entries. `lines` is the number of past entries; `follow=1` adds new entries as they arrive. */
const sendLogs = (request: AgentRequest, { query }: Asked, agent: AgentRoutes): null => {
  const asked = Number(query.get('lines') ?? CLI_LIMITS.AGENT_LOG_LINES_MAX);
  if (!Number.isInteger(asked) || asked < 0) {
    throw new Fault('API_BAD_REQUEST', { reason: '`lines` must be a whole number, 0 or more' });
  }
  const past = agent.log.last(Math.min(asked, CLI_LIMITS.AGENT_LOG_LINES_MAX));
  const text = past.map((entry) => `${JSON.stringify(entry)}\n`).join('');
  if (query.get('follow') !== '1') {
    request.response.writeHead(200, { ...NDJSON, 'content-length': Buffer.byteLength(text) }).end(text);
    return null;
  }
  const follower = follow(request, agent);
  request.response.write(text);
  follower.tell((entry) => entry);
  return null;
};

const NDJSON = { 'content-type': 'application/x-ndjson', connection: 'close' };

/** Number of followers of each log. */
const followers = new WeakMap<LogKeeper, number>();

const follow = ({ response }: AgentRequest, { log }: AgentRoutes) => {
  const count = followers.get(log) ?? 0;
  if (count >= AGENT_FOLLOWERS_MAX) {
    throw new Fault('API_STREAMS_BUSY', { limit: AGENT_FOLLOWERS_MAX, seconds: 1 });
  }
  followers.set(log, count + 1);
  response.once('close', () => followers.set(log, (followers.get(log) ?? 1) - 1));
  response.writeHead(200, NDJSON);
  response.flushHeaders();
  return {
    tell: (pick: (entry: LogEntry) => object | null): void => {
      const stop = log.follow((entry) => {
        if (entry === null) return void response.end();
        const told = pick(entry);
        if (told === null) return;
        if (response.writableLength > AGENT_LAG_MAX_BYTES) response.destroy();
        else response.write(`${JSON.stringify(told)}\n`);
      });
      response.once('close', stop);
    },
  };
};
