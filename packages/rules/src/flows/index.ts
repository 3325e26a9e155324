export { Flow, type FlowAccount, type FlowEnd } from './flow.ts';
export { FlowAddresses } from './flow-addresses.ts';
export { type LoopFacts, prefixKeyOf } from './flow-key.ts';
export { FlowList } from './flow-list.ts';
export { DROP_REASONS, type DropReason, type FlowRules, FlowTable, type ReportedDrop } from './flow-table.ts';
