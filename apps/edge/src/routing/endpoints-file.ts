// The file of who has which public endpoint, for the next run: a line for each change, and one every few seconds that says "alive".
// Written behind the event loop, one write at a time, without fsync: it is there for the end of the process, not of the machine.
import { appendFile, readFile, rename, stat, writeFile } from 'node:fs/promises';
import type { EndpointClaim, LastRun } from '@tunnel/core';
import type { Clock, Logger } from '@tunnel/runtime';
import * as z from 'zod';
import { EDGE_LIMITS } from '../limits.ts';

export interface EndpointsFileOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Claims that are written in one piece. */
const CLAIMS_PER_PIECE = 500;

export class EndpointsFile {
  readonly #options: EndpointsFileOptions;
  /** What the file says once all is written. */
  readonly #claims = new Map<string, EndpointClaim>();
  #queue = '';
  #tailChars = 0;
  /** The file on the disk is no beginning to append to: none of this run, or one that lacks something. */
  #isStale = true;
  #hasFailed = false;
  #writing: Promise<void> | null = null;
  #isClosed = false;

  constructor(options: EndpointsFileOptions) {
    this.#options = options;
  }

  /** What the last run left; null: nothing, or nothing that can be read, which is said. */
  async read(): Promise<LastRun | null> {
    const { path, logger } = this.#options;
    try {
      const { size } = await stat(path);
      if (size > EDGE_LIMITS.ENDPOINTS_FILE_MAX_BYTES) throw new Error(`it has ${size} bytes`);
      return parseEndpoints(await readFile(path, 'utf8'));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      const reason = error instanceof Error ? error.message : String(error);
      logger.error({ file: path, reason }, 'the file of endpoints cannot be read: none is held for its client');
      return null;
    }
  }

  opened(claim: EndpointClaim): void {
    this.#claims.set(claim.tunnelId, claim);
    this.#append(openLine(claim));
  }

  /** By id: the tunnel has no endpoint any more, or nobody awaits it. */
  closed(tunnelId: string): void {
    if (this.#claims.delete(tunnelId)) this.#append(lineOf({ kind: 'closed', tunnel_id: tunnelId }));
  }

  get(tunnelId: string): EndpointClaim | undefined {
    return this.#claims.get(tunnelId);
  }

  alive(): void {
    this.#append(this.#signOfLife('alive'));
  }

  /** With the last sign of life of a run that ends on purpose. Nothing is written afterwards. */
  async stopped(): Promise<void> {
    this.#append(this.#signOfLife('stopped'));
    this.#isClosed = true;
    await this.#writing;
  }

  #signOfLife(kind: 'alive' | 'stopped'): string {
    return lineOf({ kind, at: this.#options.clock.now() });
  }

  #append(text: string): void {
    if (this.#isClosed) return;
    this.#queue += text;
    if (this.#queue.length > EDGE_LIMITS.ENDPOINTS_FILE_QUEUE_CHARS) {
      // The whole file says the same in fewer words.
      this.#queue = text;
      this.#isStale = true;
    }
    this.#writing ??= this.#write().finally(() => {
      this.#writing = null;
    });
  }

  async #write(): Promise<void> {
    // What comes within this turn goes along.
    await Promise.resolve();
    while (this.#queue !== '') {
      try {
        if (this.#isStale || this.#tailChars > EDGE_LIMITS.ENDPOINTS_FILE_TAIL_CHARS) await this.#writeWhole();
        const text = this.#queue;
        this.#queue = '';
        this.#tailChars += text.length;
        await appendFile(this.#options.path, text, { mode: 0o600 });
        this.#hasFailed = false;
      } catch (error) {
        this.#failed(error);
        return;
      }
    }
  }

  /** Claims that come and go meanwhile are in the queue, too: to say so twice changes nothing. */
  async #writeWhole(): Promise<void> {
    const { path } = this.#options;
    const aside = `${path}.new`;
    await writeFile(aside, this.#pieces(), { mode: 0o600 });
    await rename(aside, path);
    this.#isStale = false;
    this.#tailChars = 0;
  }

  *#pieces(): Generator<string> {
    let piece = lineOf(HEAD) + this.#signOfLife('alive');
    let claims = 0;
    for (const claim of this.#claims.values()) {
      piece += openLine(claim);
      claims += 1;
      if (claims % CLAIMS_PER_PIECE !== 0) continue;
      yield piece;
      piece = '';
    }
    yield piece;
  }

  /** A disk that takes nothing is tried again with the next line, and then told everything. */
  #failed(error: unknown): void {
    this.#isStale = true;
    this.#queue = '';
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    const reason = error instanceof Error ? error.message : String(error);
    const { path: file, logger } = this.#options;
    logger.error({ file, reason }, 'the file of endpoints cannot be written: after a crash they are held for nobody');
  }
}

// ---- its lines ----

const HEAD = { kind: 'endpoints', version: 1 } as const;

const endpoint = z.union([
  z.object({ transport: z.literal('tcp'), port: z.int().min(1).max(65_535) }),
  z.object({ name: z.string().min(1).max(63) }),
]);
const hash = z.string().regex(/^[0-9a-f]{64}$/);
const line = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('open'),
    tunnel_id: z.string().min(1),
    /** null: the operator. */
    account_id: z.string().min(1).nullable(),
    secret_hash: hash,
    endpoint,
    group: z.object({ name: z.string().min(1), key_hash: hash }).optional(),
  }),
  z.object({ kind: z.literal('closed'), tunnel_id: z.string().min(1) }),
  z.object({ kind: z.literal('alive'), at: z.number() }),
  z.object({ kind: z.literal('stopped'), at: z.number() }),
]);
const head = z.object({ kind: z.literal(HEAD.kind), version: z.literal(HEAD.version) });

const lineOf = (value: object): string => `${JSON.stringify(value)}\n`;

const openLine = ({ tunnelId, owner, secretHash, endpoint: at, group }: EndpointClaim): string =>
  lineOf({
    kind: 'open',
    tunnel_id: tunnelId,
    account_id: owner.kind === 'operator' ? null : owner.accountId,
    secret_hash: secretHash,
    endpoint: at.kind === 'port' ? { transport: at.transport, port: at.port } : { name: at.name },
    ...(group === null ? {} : { group: { name: group.name, key_hash: group.keyHash } }),
  });

/** Throws at the first line that says nothing; only the last one may be torn. */
const parseEndpoints = (text: string): LastRun => {
  const lines = text.split('\n');
  lines.pop();
  head.parse(JSON.parse(lines[0] ?? ''));
  const claims = new Map<string, EndpointClaim>();
  let lastAliveAt = Number.NEGATIVE_INFINITY;
  let end: LastRun['end'] = 'crashed';
  for (const each of lines.slice(1)) {
    const said = line.parse(JSON.parse(each));
    if (said.kind === 'open') claims.set(said.tunnel_id, claimOf(said));
    else if (said.kind === 'closed') claims.delete(said.tunnel_id);
    else {
      lastAliveAt = said.at;
      end = said.kind === 'stopped' ? 'stopped' : 'crashed';
    }
  }
  return { claims: [...claims.values()], lastAliveAt, end };
};

const claimOf = (said: Extract<z.output<typeof line>, { kind: 'open' }>): EndpointClaim => ({
  tunnelId: said.tunnel_id,
  owner: said.account_id === null ? { kind: 'operator' } : { kind: 'account', accountId: said.account_id },
  secretHash: said.secret_hash,
  endpoint: 'port' in said.endpoint ? { kind: 'port', ...said.endpoint } : { kind: 'name', ...said.endpoint },
  group: said.group === undefined ? null : { name: said.group.name, keyHash: said.group.key_hash },
});
