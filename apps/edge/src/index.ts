export { createEdge, type Edge, type EdgeAddress, type EdgeDeps } from './edge.ts';
