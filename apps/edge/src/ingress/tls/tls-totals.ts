// What became of connections to the https port, each counted once. Plain numbers, read when somebody scrapes.

const KINDS = ['terminated', 'passthrough', 'challenge', 'control', 'no_certificate', 'failed'] as const;
export type TlsKind = (typeof KINDS)[number];

export type TlsTotals = Record<TlsKind, number>;

export const noTlsTotals = (): TlsTotals => Object.fromEntries(KINDS.map((kind) => [kind, 0])) as TlsTotals;
