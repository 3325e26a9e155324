// What the doctor looks at: the checks in the order in which they are shown, what each stands on, and what one can find.

export type CheckStatus = 'ok' | 'warn' | 'fail' | 'skip';

export interface Finding {
  readonly status: CheckStatus;
  /** What was seen. */
  readonly detail: string;
  /** What to do about it; empty where there is nothing to do. */
  readonly hint: string;
}

export interface Check extends Finding {
  readonly id: CheckId;
  readonly title: string;
  readonly ms: number;
}

/** Where on the way from the local service to the visitor a check belongs; a mark on each hop is drawn of them. */
export type Hop = 'service' | 'machine' | 'proxy' | 'network' | 'edge';

interface CheckRow {
  readonly id: string;
  readonly title: string;
  readonly hop: Hop;
  /** One of them failing leaves nothing to look at here. */
  readonly needs: readonly string[];
}

const CONNECTED = ['config', 'key_file', 'proxy', 'dns', 'tcp', 'tls', 'edge', 'key'] as const;

/**
 * In the order in which they are shown. The clock comes early because a wrong one explains what follows, though it is
 * the edge's answer that tells it.
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

/** The first check that leaves nothing to look at for this one, given what was found so far. */
export const inTheWay = (id: CheckId, found: ReadonlyMap<CheckId, Finding>): CheckId | null => {
  const { needs } = rowOf(id);
  return CHECK_IDS.find((other) => needs.includes(other) && found.get(other)?.status === 'fail') ?? null;
};

export const skipped = (detail: string): Finding => ({ status: 'skip', detail, hint: '' });

export const skippedFor = (cause: CheckId): Finding => skipped(`skipped: fix ${titleOf(cause)} first`);

/** Nothing came before the time of all was over. Without an answer to these no tunnel works; of the others nothing is known. */
export const outOfTime = (id: CheckId): Finding => {
  const isOfTheWay = id === 'carriers' || CONNECTED.some((other) => other === id);
  if (!isOfTheWay) return skipped('skipped: no time left');
  return {
    status: 'fail',
    detail: 'no response in time',
    hint: 'Run the doctor again. If this stays, the network path to the server is slow.',
  };
};

export interface Diagnosis {
  readonly ok: boolean;
  readonly checks: readonly Check[];
  /** What to do something about before anything else; null: nothing. */
  readonly first: Check | null;
}

/** Servers, certificates and proxies are quoted: none of them moves the cursor of whoever reads it. */
const quoted = (text: string): string => text.replace(/\p{Cc}+/gu, ' ');

/** What was found, in its order. A failure comes before every warning. */
export const diagnose = (found: readonly Check[]): Diagnosis => {
  const checks = found
    .map((check) => ({ ...check, detail: quoted(check.detail), hint: quoted(check.hint) }))
    .sort((a, b) => CHECK_IDS.indexOf(a.id) - CHECK_IDS.indexOf(b.id));
  const worst = (status: CheckStatus): Check | undefined => checks.find((check) => check.status === status);
  return { ok: worst('fail') === undefined, checks, first: worst('fail') ?? worst('warn') ?? null };
};

const RANK: readonly CheckStatus[] = ['fail', 'warn', 'ok', 'skip'];

/** The worst that was found on one hop. */
export const statusOfHop = (hop: Hop, checks: readonly Check[]): CheckStatus => {
  const seen = checks.filter(({ id }) => rowOf(id).hop === hop).map(({ status }) => status);
  return RANK.find((status) => seen.includes(status)) ?? 'skip';
};
