export { checkTls } from './admin/rest-security.ts';
export { createEdge } from './edge.ts';
export type { Edge, EdgeAddress, EdgeDeps } from './edge-interface.ts';
