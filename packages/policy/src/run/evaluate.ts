// The two ways into the rules: a request begins, and goes on when what it waited for is known.

import type { PolicyEvent, PolicyRequest, PolicyState, PolicyStep } from '../policy-step.ts';
import { type OnRule, type PolicyLists, Run } from './policy-run.ts';

/** `pass` and `answer` come at once, unless something must be found out first. */
export const begin = (lists: PolicyLists, request: PolicyRequest, nowMs: number, onRule?: OnRule): PolicyStep =>
  new Run(lists, request, onRule).go(nowMs);

/** `state` of the step that named the effect; each is used once. */
export const resume = (state: PolicyState, event: PolicyEvent, nowMs: number): PolicyStep => {
  if (!(state instanceof Run)) throw new TypeError('not a state of these rules');
  return state.resume(event, nowMs);
};

/**
 * A connection of tcp, or a new flow of udp: only the rules that an address decides. It goes on with `resume`; an answer, whatever its words, is a
 * reset, and of a datagram nothing.
 */
export const decideConnection = (lists: PolicyLists, address: string, nowMs: number, onRule?: OnRule): PolicyStep =>
  new Run(lists, connectionFrom(address), onRule, true).go(nowMs);

const connectionFrom = (address: string): PolicyRequest => ({
  method: '',
  path: '',
  headers: [],
  host: '',
  authority: '',
  scheme: 'http',
  address,
  isUpgrade: false,
  bodyLength: 0,
  requestId: '',
});
