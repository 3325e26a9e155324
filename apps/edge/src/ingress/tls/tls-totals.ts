// Outcomes of connections to the https port, each connection counted once. Plain numbers, read at a metrics scrape.

const KINDS = ['terminated', 'passthrough', 'challenge', 'control', 'no_certificate', 'failed'] as const;
export type TlsKind = (typeof KINDS)[number];

export type TlsTotals = Record<TlsKind, number>;

export const noTlsTotals = (): TlsTotals => Object.fromEntries(KINDS.map((kind) => [kind, 0])) as TlsTotals;
