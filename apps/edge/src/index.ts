export { checkTls } from './admin/rest-security.ts';
export { createEdge, type Edge, type EdgeAddress, type EdgeDeps } from './edge.ts';
