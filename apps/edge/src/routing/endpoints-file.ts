// File with the owner of every public endpoint, read by the next run of the edge: a line for each change, and an "alive" line every few
// seconds.

import type { LeasedEndpoint } from '@tunnel/rules/tunnels';
import { type Clock, LineLog, type LineRecord, type Logger, lineOf, recordsIn } from '@tunnel/runtime';
import type { EndpointClaim, LastRun } from './awaited-endpoints.rules.ts';

/** Maximum size of changes that wait to be written. Beyond the limit, the whole file is rewritten instead. */
const ENDPOINTS_FILE_QUEUE_CHARS = 1024 * 1024;
/** Maximum size of the changes appended to the file. Beyond the limit, the whole file is rewritten. */
const ENDPOINTS_FILE_TAIL_CHARS = 4 * 1024 * 1024;
/** Maximum size of a valid endpoint file. The file of a full edge has about 10 MB. */
const ENDPOINTS_FILE_MAX_BYTES = 64 * 1024 * 1024;

export interface EndpointsFileOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class EndpointsFile {
  readonly #options: EndpointsFileOptions;
  /** Claims as stored in the file once all pending changes have been written. */
  readonly #claims = new Map<string, EndpointClaim>();
  readonly #file: LineLog;

  constructor(options: EndpointsFileOptions) {
    const { path, logger } = options;
    this.#options = options;
    this.#file = new LineLog({
      path,
      maxBytes: ENDPOINTS_FILE_MAX_BYTES,
      queueChars: ENDPOINTS_FILE_QUEUE_CHARS,
      tailChars: ENDPOINTS_FILE_TAIL_CHARS,
      lines: () => this.#lines(),
      onFailed: (reason) => {
        const text = { file: path, reason };
        logger.error(text, 'cannot write the endpoint file; after a crash, clients may lose their names and ports');
      },
    });
  }

  /** Reads the records of the previous run. Returns null if the file does not exist, or if it is unreadable, which is logged. */
  async read(): Promise<LastRun | null> {
    const { path, logger } = this.#options;
    try {
      const text = await this.#file.read();
      return text === null ? null : parseEndpoints(text);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      logger.error({ file: path, reason }, 'cannot read the endpoint file; no names or ports are held for clients');
      return null;
    }
  }

  opened(claim: EndpointClaim): void {
    this.#claims.set(claim.tunnelId, claim);
    this.#file.append(openLine(claim));
  }

  /** Deletes the claim of a tunnel that no longer has an endpoint, or that is no longer expected to return. */
  closed(tunnelId: string): void {
    if (this.#claims.delete(tunnelId)) this.#file.append(lineOf({ kind: 'closed', tunnel_id: tunnelId }));
  }

  get(tunnelId: string): EndpointClaim | undefined {
    return this.#claims.get(tunnelId);
  }

  alive(): void {
    this.#file.append(this.#signOfLife('alive'));
  }

  /** Writes the last line of a run that was stopped by the operator, and closes the file. Later changes are not written. */
  async stopped(): Promise<void> {
    this.#file.append(this.#signOfLife('stopped'));
    await this.#file.close();
  }

  #signOfLife(kind: 'alive' | 'stopped'): string {
    return lineOf({ kind, at: this.#options.clock.now() });
  }

  *#lines(): Generator<string> {
    yield lineOf(HEAD);
    yield this.#signOfLife('alive');
    for (const claim of this.#claims.values()) yield openLine(claim);
  }
}

// ---- lines of the file ----

const HEAD = { kind: 'endpoints', version: 1 } as const;

const openLine = ({ tunnelId, owner, secretHash, endpoint: at, group }: EndpointClaim): string =>
  lineOf({
    kind: 'open',
    tunnel_id: tunnelId,
    // An account id of null stands for the operator.
    account_id: owner.kind === 'operator' ? null : owner.accountId,
    secret_hash: secretHash,
    endpoint: fieldsOfEndpoint(at),
    ...(group === null ? {} : { group: { name: group.name, key_hash: group.keyHash } }),
  });

const fieldsOfEndpoint = (at: LeasedEndpoint): object => {
  if (at.kind === 'port') return { transport: at.transport, port: at.port };
  if (at.kind === 'peer-name') return { peer_name: at.name, peer_account: at.account };
  return { [at.kind]: at.name, ...(at.passesTls === true ? { passes_tls: true } : {}) };
};

const isHead = ({ kind, version }: LineRecord): boolean => kind === HEAD.kind && version === HEAD.version;

/** Parses an endpoint file. Throws at the first line that is not a valid record. */
const parseEndpoints = (text: string): LastRun => {
  const claims = new Map<string, EndpointClaim>();
  let lastAliveAt = Number.NEGATIVE_INFINITY;
  let end: LastRun['end'] = 'crashed';
  for (const said of recordsIn(text, isHead)) {
    if (said['kind'] === 'open') claims.set(textOf(said['tunnel_id']), claimOf(said));
    else if (said['kind'] === 'closed') claims.delete(textOf(said['tunnel_id']));
    else if (said['kind'] === 'alive' || said['kind'] === 'stopped') {
      lastAliveAt = timeOf(said['at']);
      end = said['kind'] === 'stopped' ? 'stopped' : 'crashed';
    } else throw new Error('the file has an empty record');
  }
  return { claims: [...claims.values()], lastAliveAt, end };
};

// The records are validated by hand, because a schema takes ten times as long, and clients wait for the start of the edge.

const claimOf = (said: LineRecord): EndpointClaim => {
  const { account_id: accountId, group } = said;
  return {
    tunnelId: textOf(said['tunnel_id']),
    owner: accountId === null ? { kind: 'operator' } : { kind: 'account', accountId: textOf(accountId) },
    secretHash: hashOf(said['secret_hash']),
    // Older versions wrote no `peer_account`. Most peer names belong to the account of the tunnel.
    endpoint: endpointOf({ peer_account: accountId ?? '', ...fieldsOf(said['endpoint']) }),
    group: group === undefined ? null : groupOf(fieldsOf(group)),
  };
};

const groupOf = (group: LineRecord): NonNullable<EndpointClaim['group']> => ({
  name: textOf(group['name']),
  keyHash: hashOf(group['key_hash']),
});

const endpointOf = ({ transport, port, name, domain, peer_name: peerName, ...rest }: LineRecord): LeasedEndpoint => {
  const tls = rest['passes_tls'] === true ? ({ passesTls: true } as const) : {};
  if (name !== undefined) return { kind: 'name', name: textOf(name), ...tls };
  if (domain !== undefined) return { kind: 'domain', name: textOf(domain), ...tls };
  if (peerName !== undefined) {
    const { peer_account: account } = rest;
    // The operator's peer names have an empty account.
    return {
      kind: 'peer-name',
      name: textOf(peerName),
      account: account === null || account === '' ? account : textOf(account),
    };
  }
  if ((transport !== 'tcp' && transport !== 'udp') || !Number.isInteger(port))
    throw new Error('the file has an invalid endpoint');
  return { kind: 'port', transport, port: port as number };
};

const fieldsOf = (value: unknown): LineRecord => {
  if (typeof value !== 'object' || value === null) throw new Error('the file has a line without an object');
  return value as LineRecord;
};

const timeOf = (value: unknown): number => {
  if (typeof value !== 'number') throw new Error('the file has an invalid time');
  return value;
};

const textOf = (value: unknown): string => {
  if (typeof value !== 'string' || value === '') throw new Error('the file has an invalid text');
  return value;
};

const hashOf = (value: unknown): string => {
  if (!/^[0-9a-f]{64}$/.test(textOf(value))) throw new Error('the file has an invalid hash');
  return value as string;
};
