// The doctor's checks in display order, with the dependencies and possible results of every check.

export type CheckStatus = 'ok' | 'warn' | 'fail' | 'skip';

export interface Finding {
  readonly status: CheckStatus;
  /** Observed facts, for display. */
  readonly detail: string;
  /** Advice for the user. Empty if no action is needed. */
  readonly hint: string;
}

export interface Check extends Finding {
  readonly id: CheckId;
  readonly title: string;
  readonly ms: number;
}

/** A section of the path from the local service to the visitor. The drawing shows a mark for every hop. */
export type Hop = 'service' | 'machine' | 'proxy' | 'network' | 'edge';

interface CheckRow {
  readonly id: string;
  readonly title: string;
  readonly hop: Hop;
  /** Checks required before this check. If a required check failed, this check is skipped. */
  readonly needs: readonly string[];
}

const CONNECTED = ['config', 'key_file', 'proxy', 'dns', 'tcp', 'tls', 'edge', 'key'] as const;

/**
 * Checks in display order. The clock comes early because a wrong clock explains later failures, although the time comes from the edge's
 * response.
 */
const CHECKS = [
  { id: 'config', title: 'config file', hop: 'machine', needs: [] },
  { id: 'key_file', title: 'API key', hop: 'machine', needs: ['config'] },
  { id: 'clock', title: 'clock', hop: 'machine', needs: ['config', 'proxy', 'dns', 'tcp'] },
  { id: 'proxy', title: 'proxy', hop: 'proxy', needs: ['config'] },
  { id: 'dns', title: 'server name', hop: 'network', needs: ['config', 'proxy'] },
  { id: 'tcp', title: 'connection', hop: 'network', needs: ['config', 'proxy', 'dns'] },
  { id: 'tls', title: 'certificate', hop: 'network', needs: ['config', 'proxy', 'dns', 'tcp'] },
  { id: 'edge', title: 'edge', hop: 'edge', needs: ['config', 'proxy', 'dns', 'tcp', 'tls'] },
  { id: 'key', title: 'key on the edge', hop: 'edge', needs: CONNECTED.slice(0, -1) },
  { id: 'carriers', title: 'carriers', hop: 'edge', needs: CONNECTED },
  { id: 'latency', title: 'latency', hop: 'network', needs: [...CONNECTED, 'carriers'] },
  { id: 'bandwidth', title: 'bandwidth', hop: 'network', needs: CONNECTED },
  { id: 'udp', title: 'UDP', hop: 'network', needs: CONNECTED },
  { id: 'nat', title: 'NAT', hop: 'network', needs: [...CONNECTED, 'udp'] },
  { id: 'targets', title: 'local services', hop: 'service', needs: ['config'] },
  { id: 'platform', title: 'platform', hop: 'machine', needs: ['config', 'proxy'] },
] as const satisfies readonly CheckRow[];

export type CheckId = (typeof CHECKS)[number]['id'];

export const CHECK_IDS: readonly CheckId[] = CHECKS.map(({ id }) => id);

const rowOf = (id: CheckId): CheckRow => CHECKS.find((row) => row.id === id) as CheckRow;

export const titleOf = (id: CheckId): string => rowOf(id).title;

/** Returns the first failed check required by this check, or null. */
export const inTheWay = (id: CheckId, found: ReadonlyMap<CheckId, Finding>): CheckId | null => {
  const { needs } = rowOf(id);
  return CHECK_IDS.find((other) => needs.includes(other) && found.get(other)?.status === 'fail') ?? null;
};

export const skipped = (detail: string): Finding => ({ status: 'skip', detail, hint: '' });

export const skippedFor = (cause: CheckId): Finding => skipped(`skipped: fix ${titleOf(cause)} first`);

/**
 * Result of a check without a response within the total time. Fails for checks on the path required by every tunnel; otherwise the result
 * is unknown, so the check is skipped.
 */
export const outOfTime = (id: CheckId): Finding => {
  const isOfTheWay = id === 'carriers' || CONNECTED.some((other) => other === id);
  if (!isOfTheWay) return skipped('skipped: no time left');
  return {
    status: 'fail',
    detail: 'no response in time',
    hint: 'Run the doctor again. If the result stays the same, the network path to the server is slow.',
  };
};

export interface Diagnosis {
  readonly ok: boolean;
  readonly checks: readonly Check[];
  /** The check to fix first. Null if no action is needed. */
  readonly first: Check | null;
}

/** Removes control characters from quoted text of servers, certificates and proxies, so that the text cannot control the terminal. */
const quoted = (text: string): string => text.replace(/\p{Cc}+/gu, ' ');

/** Sorts the results into display order. `first` prefers failures over warnings. */
export const diagnose = (found: readonly Check[]): Diagnosis => {
  const checks = found
    .map((check) => ({ ...check, detail: quoted(check.detail), hint: quoted(check.hint) }))
    .sort((a, b) => CHECK_IDS.indexOf(a.id) - CHECK_IDS.indexOf(b.id));
  const worst = (status: CheckStatus): Check | undefined => checks.find((check) => check.status === status);
  return { ok: worst('fail') === undefined, checks, first: worst('fail') ?? worst('warn') ?? null };
};

const RANK: readonly CheckStatus[] = ['fail', 'warn', 'ok', 'skip'];

/** Returns the worst result on a hop. */
export const statusOfHop = (hop: Hop, checks: readonly Check[]): CheckStatus => {
  const seen = checks.filter(({ id }) => rowOf(id).hop === hop).map(({ status }) => status);
  return RANK.find((status) => seen.includes(status)) ?? 'skip';
};
