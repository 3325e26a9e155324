export { LinkedSet, ListNode } from './linked-set.ts';
export { NOT_RANKED, type Ranked, Ranking } from './ranking.ts';
