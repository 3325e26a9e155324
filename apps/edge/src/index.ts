export { createEdge, type Edge, type EdgeAddress, type EdgeDeps } from './edge.ts';
export { loadTlsFiles } from './ingress/tls/certificate.ts';
