export { createEdge, type Edge, type EdgeAddress, type EdgeDeps } from './edge.ts';
export { loadTlsFiles } from './tls-files.ts';
