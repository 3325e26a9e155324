export { createEdge, type Edge, type EdgeAddress } from './edge.ts';
export type { EdgeDeps } from './edge-parts/edge-deps.ts';
export { loadTlsFiles } from './ingress/tls/tls-files.ts';
