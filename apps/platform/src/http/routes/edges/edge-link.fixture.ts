// The edge link over real HTTP: a platform process that serves only the link, and the feed of changes as an edge reads it.
import { EDGE_LINK_PATH, type EdgeChange, edgeChange } from '@tunnel/contract';
import { type Clock, type Logger, systemClock } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { Database } from '../../../db/database.ts';
import { ChangeFeed } from '../../../services/edges/change-feed.ts';
import { createLinkFixture, type LinkFixture } from '../../../services/edges/link.fixture.ts';
import { KeyUses } from '../../../services/keys/verify-key.ts';
import { openGate } from '../../server/gate.fixture.ts';
import { HttpServer } from '../../server/http-server.ts';
import { createPlatformApp } from '../../server/platform-app.ts';
import type { RouteContext } from '../../shared/platform-env.ts';
import { addEdgeLinkRoutes, type EdgeLinkDeps } from './edge-link-routes.ts';

export interface LinkServer {
  readonly url: string;
  readonly feed: ChangeFeed;
  readonly fetchInside: (request: Request) => Promise<Response>;
  stop(): Promise<void>;
}

interface LinkServerOptions {
  readonly clock?: Clock;
  readonly certificates?: EdgeLinkDeps['certificates'];
  readonly trustedProxies?: readonly string[];
  readonly host?: string;
  readonly logger?: Logger;
  readonly strangers?: EdgeLinkDeps['strangers'];
  readonly ownCredential?: EdgeLinkDeps['ownCredential'];
}

/** Starts another process on the same database. Uses the real clock by default, because keep-alive lines need it. */
export const startLinkServer = async (
  fixture: LinkFixture,
  {
    clock = systemClock,
    certificates = () => null,
    trustedProxies = [],
    host = '127.0.0.1',
    ...given
  }: LinkServerOptions = {},
): Promise<LinkServer> => {
  const { logger } = { ...fixture, ...given };
  const database = new Database({ url: fixture.database.url, logger, connections: 10 });
  const settings = {
    trusted_proxies: trustedProxies,
    public_url: 'http://localhost',
    host,
  } as unknown as RouteContext['settings'];
  const app = createPlatformApp({ logger, settings });
  const feed = new ChangeFeed({ db: database.db, pool: database.pool, clock, logger });
  const keyUses = new KeyUses({ db: database.db, clock, logger });
  addEdgeLinkRoutes(app, {
    db: database.db,
    clock: fixture.clock,
    logger,
    settings,
    version: '0',
    keyUses,
    changes: feed,
    masterKey: fixture.masterKey,
    names: fixture.names,
    certificates,
    strangers: given.strangers,
    ownCredential: given.ownCredential,
  });
  const server = new HttpServer({ host, port: 0, app, gate: openGate(), clock: systemClock, logger });
  await server.start();
  feed.start();
  return {
    url: `http://127.0.0.1:${server.address.port}${EDGE_LINK_PATH}`,
    feed,
    fetchInside: async (request) => app.fetch(request),
    stop: async () => {
      await feed.stop();
      await server.stop();
      await database.close();
    },
  };
};

export const createLinkServer = async (): Promise<{
  fixture: LinkFixture;
  server: LinkServer;
  stop(): Promise<void>;
}> => {
  const fixture = await createLinkFixture();
  const server = await startLinkServer(fixture);
  return {
    fixture,
    server,
    stop: async () => {
      await server.stop();
      await fixture.close();
    },
  };
};

export const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` });

/** Changes sent to an edge, starting at a change number. */
export class HeardChanges {
  readonly all: EdgeChange[] = [];
  /** True once the platform has ended the feed. */
  ended = false;
  readonly #abort = new AbortController();

  static async from(url: string, credential: string, since: number): Promise<HeardChanges> {
    const heard = new HeardChanges();
    const response = await fetch(`${url}/changes?since=${since}`, {
      headers: bearer(credential),
      signal: heard.#abort.signal,
    });
    if (response.status !== 200) throw new Error(`changes: ${response.status}`);
    void heard.#read(response).catch(() => {});
    return heard;
  }

  /** Changes without the keep-alive lines. */
  get news(): EdgeChange[] {
    return this.all.filter((change) => change.kind !== 'alive');
  }

  async until(count: number): Promise<EdgeChange[]> {
    await eventually(() => {
      if (this.news.length < count) throw new Error(`${this.news.length} of ${count} changes`);
    });
    return this.news;
  }

  hangUp(): void {
    this.#abort.abort();
  }

  async #read(response: Response): Promise<void> {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.all.push(edgeChange.parse(JSON.parse(line)));
    }
    this.ended = true;
  }
}
