// The platform's HTTP app over a separate database, with two users who identify themselves with a header. For tests only.

import { loadServerConfig } from '@tunnel/config/server';
import type {
  AwaitedRequest,
  CapturedRequest,
  CaptureList,
  EdgeFlows,
  EdgePeers,
  EdgeTunnel,
  HealthEvent,
  PlatformPools,
  TunnelPolicy,
} from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { createLogger } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import type { MiddlewareHandler } from 'hono';
import { createTestDatabase, type TestDatabase } from '../../db/test-database.fixture.ts';
import type { UserActor } from '../../services/shared/service-context.ts';
import type { PlatformApp, PlatformEnv, RouteContext } from '../shared/platform-env.ts';
import { createPlatformApp } from './platform-app.ts';

/** Stands in for every edge: returns the response set by the test, and records the calls. */
export class ScriptedEdges {
  readonly asked: unknown[][] = [];
  answer: unknown = null;

  async groups(...question: unknown[]): Promise<PlatformPools> {
    return (await this.#ask(question)) as PlatformPools;
  }
  async tunnels(...question: unknown[]): Promise<EdgeTunnel[]> {
    return (await this.#ask(question)) as EdgeTunnel[];
  }
  async tunnel(...question: unknown[]): Promise<EdgeTunnel> {
    return (await this.#ask(question)) as EdgeTunnel;
  }
  async requests(...question: unknown[]): Promise<CaptureList> {
    return (await this.#ask(question)) as CaptureList;
  }
  async request(...question: unknown[]): Promise<CapturedRequest> {
    return (await this.#ask(question)) as CapturedRequest;
  }
  async nextRequest(...question: unknown[]): Promise<AwaitedRequest> {
    return (await this.#ask(question)) as AwaitedRequest;
  }
  async closeTunnel(...question: unknown[]): Promise<void> {
    await this.#ask(question);
  }
  async replay(...question: unknown[]): Promise<CapturedRequest> {
    return (await this.#ask(question)) as CapturedRequest;
  }
  async healthEvents(...question: unknown[]): Promise<HealthEvent[]> {
    return (await this.#ask(question)) as HealthEvent[];
  }
  async policy(...question: unknown[]): Promise<TunnelPolicy> {
    return (await this.#ask(question)) as TunnelPolicy;
  }
  async flows(...question: unknown[]): Promise<EdgeFlows> {
    return (await this.#ask(question)) as EdgeFlows;
  }
  async peers(...question: unknown[]): Promise<EdgePeers> {
    return (await this.#ask(question)) as EdgePeers;
  }
  async dismissPeer(...question: unknown[]): Promise<void> {
    await this.#ask(question);
  }

  async #ask(question: unknown[]): Promise<unknown> {
    this.asked.push(question);
    if (this.answer instanceof Error) throw this.answer;
    return this.answer;
  }
}

export type FixtureDeps = RouteContext & {
  readonly requireUser: MiddlewareHandler<PlatformEnv>;
  readonly edges: ScriptedEdges;
};

export interface PlatformFixture {
  readonly database: TestDatabase;
  readonly clock: FakeClock;
  readonly edges: ScriptedEdges;
  readonly deps: FixtureDeps;
  readonly app: PlatformApp;
  readonly alice: UserActor;
  readonly bob: UserActor;
  /** Sends a request as the given user. */
  ask(user: UserActor | null, method: string, path: string, body?: unknown): Promise<Response>;
  close(): Promise<void>;
}

const requireNamedUser: MiddlewareHandler<PlatformEnv> = async (context, next) => {
  const userId = context.req.header('x-user');
  if (userId === undefined) throw new Fault('AUTH_TOKEN_MISSING');
  context.set('actor', { kind: 'user', userId, epoch: 0 });
  await next();
};

export const openPlatformFixture = async (
  addRoutes: (app: PlatformApp, deps: FixtureDeps) => void,
): Promise<PlatformFixture> => {
  const database = await createTestDatabase();
  const { db } = database;
  const clock = new FakeClock(Date.UTC(2030, 5, 15, 12));
  const logger = createLogger({ level: 'silent', format: 'json' });
  const { platform: settings, names } = loadServerConfig({ env: {} });
  const edges = new ScriptedEdges();
  const deps = { db, clock, logger, settings, names, version: '1.2.3', requireUser: requireNamedUser, edges };
  const app = createPlatformApp({ logger, settings });
  addRoutes(app, deps);
  await db
    .insertInto('plans')
    .values({
      name: 'free',
      tunnel_limit: 3,
      allow_custom_subdomains: true,
      monthly_minimum_cents: 0,
      price_cents_per_gb: 0,
      reserved_limit: 3,
      domain_limit: 3,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const addUser = async (email: string): Promise<UserActor> => {
    const row = db.insertInto('users').values({ email, plan: 'free', display_name: null, password_hash: null });
    const { id } = await row.returning('id').executeTakeFirstOrThrow();
    return { kind: 'user', userId: id };
  };
  const alice = await addUser('alice@example.com');
  const bob = await addUser('bob@example.com');
  return {
    database,
    clock,
    edges,
    deps,
    app,
    alice,
    bob,
    ask: async (user, method, path, body) =>
      app.request(path, {
        method,
        headers: {
          ...(user === null ? {} : { 'x-user': user.userId }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    close: () => database.close(),
  };
};
