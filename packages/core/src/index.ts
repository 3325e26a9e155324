export { type Owner, sameOwner } from './owner.ts';
